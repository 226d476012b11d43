//! The page of `zkr serve` in a real browser, a headless Chromium, and its metrics in Prometheus's own
//! checks.
//!
//! The pictures are written to the directory that `PAGE_PICTURES` names.

#![cfg(unix)]

mod browser;
#[path = "../cli/support.rs"]
#[expect(dead_code)]
mod support;

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use futures_util::future::join_all;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use zookeeper_client::Client;
use zookeeper_recipes_suite::create;

use crate::browser::Browser;
use crate::support::{Stage, clients, queue};

/// What a contender could try in place of its name.
const HOSTILE: &str = "<img src=x onerror=document.title='taken'>";

/// Writes a picture if somebody wants it.
fn picture(browser: &mut Browser, name: &str) {
    if let Some(directory) = std::env::var_os("PAGE_PICTURES") {
        browser.picture(&PathBuf::from(directory).join(name));
    }
}

/// Queues as a fleet has them, with a circle of two sessions.
async fn fleet(stage: &Stage) -> [Client; 6] {
    let directories = [
        "/locks",
        "/locks/billing",
        "/locks/billing/invoices",
        "/locks/billing/ledger",
        "/locks/reports",
        "/locks/reports/daily",
        "/locks/reports/hostile",
        "/locks/search",
        "/locks/search/index-7",
        "/locks/images",
        "/locks/images/resize",
        "/locks/images/thumbnails",
    ];
    let clients: [Client; 6] = clients(stage, &directories).await;
    let [billing, ledger, daily, search, images, other] = &clients;
    for (client, path, owner) in [
        (
            billing,
            "/locks/billing/invoices",
            "billing-worker@app-3:4121",
        ),
        (ledger, "/locks/billing/ledger", "ledger-sync@app-7:977"),
        (
            billing,
            "/locks/billing/ledger",
            "billing-worker@app-3:4121",
        ),
        (ledger, "/locks/billing/invoices", "ledger-sync@app-7:977"),
        (other, "/locks/billing/invoices", "invoice-mail@app-1:388"),
        (daily, "/locks/reports/daily", "report-daily@batch-2:31"),
        (search, "/locks/search/index-7", "indexer@search-1:1201"),
        (search, "/locks/reports/daily", "indexer@search-1:1201"),
        (other, "/locks/reports/daily", "invoice-mail@app-1:388"),
        (images, "/locks/search/index-7", "resizer@img-4:85"),
        (images, "/locks/images/resize", "resizer@img-4:85"),
        (images, "/locks/images/thumbnails", "resizer@img-4:85"),
        (other, "/locks/images/resize", "invoice-mail@app-1:388"),
        (daily, "/locks/reports/hostile", HOSTILE),
    ] {
        queue(client, path, owner).await;
    }
    clients
}

#[tokio::test(flavor = "multi_thread")]
async fn page_shows_queues_circles_and_sessions_and_follows_them() {
    let stage = Stage::new();
    let clients = fleet(&stage).await;
    let (_server, address) = stage.serve("50ms", "").await;
    let mut browser = Browser::start();
    browser.size(1280, 900, false);
    browser.prefer("light");
    browser.open(&format!("http://{address}/"));

    // The worst comes first, with its way out.
    browser.shows("#queues .row .path", "/locks/billing/");
    browser.shows(".circle", "2 sessions wait for each other");
    browser.shows(".circle", "billing-worker@app-3:4121");
    browser.shows(".circle code", &format!("zkr --connect {} ", stage.connect));
    browser.shows(".circle code", "evict /locks/billing/ledger --if-holder ");
    browser.shows("#queues-count", "7");
    picture(&mut browser, "light.png");
    let light = browser.value("getComputedStyle(document.documentElement).backgroundColor");

    search_and_keys(&mut browser);
    hostile_text_is_text(&mut browser);

    // A queue.
    browser.value("openQueue('/locks/reports/daily')");
    browser.shows("#detail", "exclusive lock: 1 holds, 2 wait");
    browser.shows("#detail", "waits for 1");
    browser.shows("#detail", "127.0.0.1:");
    picture(&mut browser, "queue.png");

    // It follows what happens: the holder is gone.
    let [billing, ledger, daily, search, images, other] = clients;
    drop(daily);
    browser.shows("#detail", "exclusive lock: 1 holds, 1 waits");
    browser.until("!document.querySelector('#detail').innerText.includes('report-daily')");
    browser.press("Escape");
    browser.until("document.querySelector('#detail').classList.contains('hidden')");

    // The graph and the sessions.
    browser.press("3");
    browser.until("document.querySelectorAll('#graph .node.bad').length === 2");
    browser.until("document.querySelectorAll('#graph .edge.bad').length === 2");
    browser.value("scrollTo(0, document.body.scrollHeight)");
    picture(&mut browser, "graph.png");
    browser.press("2");
    browser.shows("#sessions .view", "billing-worker@app-3:4121");
    browser.click("#sessions .row");
    browser.shows("#detail", "/locks/billing/");
    browser.value("scrollTo(0, document.body.scrollHeight)");
    picture(&mut browser, "sessions.png");
    browser.press("1");

    dark_and_narrow(&mut browser, &light);

    // The circle is broken.
    drop(ledger);
    browser.until("document.querySelector('.circle') === null");
    browser.shows("#circles-count", "0");
    drop((billing, search, images, other));
    browser.shows("#queues", "No queue is here or below.");
    assert_eq!(browser.complaints, Vec::<String>::new());
    policy_allows_the_own_script_only(&mut browser);
}

fn policy_allows_the_own_script_only(browser: &mut Browser) {
    browser.value(
        "(() => {\
           const script = document.createElement('script');\
           script.textContent = 'window.taken = true';\
           document.body.append(script);\
         })()",
    );
    assert!(
        browser.value("window.taken").is_null(),
        "no other script runs"
    );
    let asked = browser.value("fetch('http://127.0.0.1:1/').then(() => 'sent', () => 'refused')");
    assert_eq!(asked, "refused");
    let refusals = browser.complaints.join("\n");
    for directive in ["script-src", "connect-src"] {
        assert!(refusals.contains(directive), "{directive}: {refusals}");
    }
}

fn search_and_keys(browser: &mut Browser) {
    let paths = "[...document.querySelectorAll('#queues .row:not(.hidden) .path')]\
                 .map((it) => it.textContent).join()";
    browser.press("/");
    browser.write("images resiz");
    browser.until(&format!(
        "{paths} === '/locks/images/resize,/locks/images/thumbnails'"
    ));
    browser.shows("#shown", "2 of 7");
    browser.press("Enter");
    browser.press("j");
    browser.until("document.querySelector('.row.chosen .path').textContent.endsWith('thumbnails')");
    browser.press("k");
    browser.press("Enter");
    browser.shows("#detail h2", "/locks/images/resize");
    browser.press("Escape");
    browser.press("/");
    browser.press("Escape");
    browser.until("document.querySelectorAll('#queues .row:not(.hidden)').length === 7");
}

fn hostile_text_is_text(browser: &mut Browser) {
    browser.value("openQueue('/locks/reports/hostile')");
    browser.shows("#detail", HOSTILE);
    browser.until("document.querySelectorAll('img').length === 0");
    assert_ne!(browser.value("document.title"), "taken");
}

fn dark_and_narrow(browser: &mut Browser, light: &Value) {
    browser.value("scrollTo(0, 0)");
    browser.prefer("dark");
    let dark = browser.value("getComputedStyle(document.documentElement).backgroundColor");
    assert_ne!(&dark, light);
    picture(browser, "dark.png");
    browser.size(390, 844, true);
    for view in ["1", "2", "3"] {
        browser.press(view);
        browser.until("document.querySelector('[aria-selected=true]') !== null");
        let overflow = browser.value("document.documentElement.scrollWidth - innerWidth");
        assert_eq!(overflow, 0, "view {view}");
        browser.value("scrollTo(0, document.body.scrollHeight)");
        picture(browser, &format!("phone-{view}.png"));
    }
    browser.press("1");
    browser.value("openQueue('/locks/reports/daily')");
    browser.shows("#detail", "exclusive lock");
    let overflow = browser.value("document.documentElement.scrollWidth - innerWidth");
    assert_eq!(overflow, 0, "a queue");
    picture(browser, "phone-queue.png");
    browser.press("Escape");
    browser.value("scrollTo(0, 0)");
    picture(browser, "phone.png");
    browser.size(1280, 900, false);
}

#[tokio::test(flavor = "multi_thread")]
async fn page_asks_for_the_token_and_keeps_it_out_of_the_address() {
    let stage = Stage::new();
    let [one] = clients(&stage, &["/lock"]).await;
    queue(&one, "/lock", "owner").await;
    let file = stage.file("token");
    std::fs::write(file, "correct-horse-battery-staple").expect("it is written");
    let (_server, address) = stage.serve("50ms", &format!("--token-file {file}")).await;
    let mut browser = Browser::start();
    browser.open(&format!("http://{address}/"));
    browser.shows("#login", "needs the token");
    browser.write("wrong-horse-battery-staple");
    browser.click("#login button");
    browser.shows("#refused", "This is not the token.");
    browser.write("correct-horse-battery-staple");
    browser.click("#login button");
    browser.shows("#queues .row .path", "/lock");
    // It is kept for the tab.
    browser.open(&format!("http://{address}/?again"));
    browser.shows("#queues .row .path", "/lock");
    browser.value("sessionStorage.clear()");
    browser.open(&format!(
        "http://{address}/?link#token=correct-horse-battery-staple"
    ));
    browser.shows("#queues .row .path", "/lock");
    assert_eq!(browser.value("location.hash"), "");
    browser.value("sessionStorage.clear()");
    browser.open(&format!("http://{address}/?half#token=%"));
    browser.shows("#refused", "This is not the token.");
}

/// Runs Prometheus's own check, with this text as its input.
fn promtool(arguments: &[&str], input: &str) {
    let mut check = Command::new("promtool")
        .args(arguments)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/monitoring"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool");
    let mut stdin = check.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).expect("it reads");
    drop(stdin);
    let checked = check.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        checked.status.success(),
        "{arguments:?}: {text} {checked:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn prometheus_accepts_the_metrics_and_the_alerts() {
    let stage = Stage::new();
    let _clients = fleet(&stage).await;
    let (_server, address) = stage.serve("50ms", "").await;
    let mut stream = TcpStream::connect(&address).await.expect("it listens");
    let request = format!("GET /metrics HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer).await;
    read.expect("an answer");
    let (_, metrics) = answer.split_once("\r\n\r\n").expect("a body");
    assert!(metrics.contains("zkr_circles 1\n"), "{metrics}");
    promtool(&["check", "metrics"], metrics);
    promtool(&["check", "rules", "alerts.yml"], "");
    promtool(&["test", "rules", "alerts_test.yml"], "");
}

/// Adds so many queues, each with a contender.
async fn many(stage: &Stage, number: usize) -> Client {
    let [client] = clients(stage, &["/many"]).await;
    let numbers: Vec<usize> = (0..number).collect();
    for part in numbers.chunks(500) {
        let paths = || part.iter().map(|it| format!("/many/queue-{it:05}"));
        join_all(paths().map(async |path| create(&client, &path).await)).await;
        let contend = async |path: String| queue(&client, &path, "worker@host-17:4711").await;
        join_all(paths().map(contend)).await;
    }
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_queues_are_drawn_at_once() {
    const QUEUES: usize = 10_000;
    let stage = Stage::new();
    let client = many(&stage, QUEUES).await;
    let (_server, address) = stage.serve("2s", "").await;
    let mut browser = Browser::start();
    browser.size(1280, 900, false);
    browser.open(&format!("http://{address}/"));
    browser.shows("#queues-count", "10,000");
    let number = |value: Value| value.as_f64().expect("a number");
    let elements = number(browser.value("document.querySelectorAll('#queues .row').length"));
    assert!(
        elements < 100.0,
        "only rows in sight are elements: {elements}"
    );
    let size =
        number(browser.value("(async () => (await (await ask('api/overview')).text()).length)()"));
    // Parses the whole overview, sorts it and lays it out.
    let draw = number(browser.value(
        "(async () => {\
           const text = await (await ask('api/overview')).text();\
           const began = performance.now();\
           take(JSON.parse(text));\
           document.body.offsetHeight;\
           return performance.now() - began;\
         })()",
    ));
    let search = number(browser.value(
        "(() => {\
           const began = performance.now();\
           document.getElementById('search').value = 'queue-099';\
           searched();\
           document.body.offsetHeight;\
           const took = performance.now() - began;\
           document.getElementById('search').value = '';\
           searched();\
           return took;\
         })()",
    ));
    let scroll = number(browser.value(
        "(() => {\
           const box = document.querySelector('#queues .view');\
           const began = performance.now();\
           for (let step = 0; step < 100; step += 1) {\
             box.scrollTop = step * 3799;\
             drawRows();\
             document.body.offsetHeight;\
           }\
           return (performance.now() - began) / 100;\
         })()",
    ));
    browser.shows("#queues", "/many/queue-099");
    // One change is one row.
    queue(&client, "/many/queue-00042", "another@host-18:1").await;
    browser.shows("#waiters-count", "1");
    println!(
        "{QUEUES} queues: {size} bytes of JSON, drawn in {draw:.0} ms, searched in {search:.0} ms, \
         {scroll:.1} ms for each step of scrolling, {elements} rows are elements"
    );
    // The frames of a busy machine are slow; without virtual rows this takes seconds.
    assert!(draw < 1_500.0 && search < 500.0 && scroll < 50.0);
    assert_eq!(browser.complaints, Vec::<String>::new());
}
