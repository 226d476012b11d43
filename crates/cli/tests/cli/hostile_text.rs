//! Text that other clients and servers wrote: a terminal obeys none of it.

use std::io::{Read, Write};
use std::net::TcpListener;

use zookeeper_client::Client;
use zookeeper_recipes_suite::create;

use crate::support::{CURATOR, Stage, queue_as, run};

/// Sets the title, clears the screen (also by a single letter), and turns the writing around.
const HOSTILE: &str = "a\x1b]0;title\x07\u{9b}2J\u{202e}b\x7f\rc";

fn is_obeyed(letter: char) -> bool {
    letter != '\n' && (letter.is_control() || letter == '\u{202e}')
}

fn nothing_is_obeyed(what: &str, text: &str) {
    assert!(!text.is_empty(), "{what}");
    assert!(!text.chars().any(is_obeyed), "{what}: {text:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_of_a_contender_reaches_no_terminal() {
    let stage = Stage::new();
    let client = Client::connect(&stage.connect).await.expect("it connects");
    create(&client, "/leader").await;
    let candidate = format!("{CURATOR}latch-");
    queue_as(&client, "/leader", &candidate, HOSTILE).await;
    for verb in ["who", "leader"] {
        for options in ["", "--json"] {
            let shown = stage.run(format!("{verb} /leader {options}")).await;
            shown.coded(0);
            nothing_is_obeyed(verb, &shown.stdout);
        }
    }
    let object = stage.run("leader /leader --json").await.json();
    assert_eq!(object["id"], HOSTILE, "a program reads what was written");
    for data in [&[0xff, 0xfe][..], &[b'x'; 100]] {
        queue_as(&client, "/leader", &candidate, data).await;
    }
    let who = stage.run("who /leader").await;
    who.shows(["  (2 bytes)  "]);
    who.shows([&format!("  {}  ", "x".repeat(60))]);
    let node = stage.contenders("/leader").remove(0);
    let evicted = stage.run(&["evict", "/leader", &node, "--yes"]).await;
    evicted.coded(0);
    nothing_is_obeyed("evict", &evicted.stdout);
    let unknown = stage.run(("evict /leader", [HOSTILE, "--yes"])).await;
    nothing_is_obeyed("a failure", unknown.failed_with(64));
}

#[tokio::test(flavor = "multi_thread")]
async fn words_of_a_server_reach_no_terminal() {
    let stage = Stage::new();
    let hostile = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = hostile.local_addr().expect("an address");
    // The thread ends with the test's process.
    std::thread::spawn(move || {
        for stream in hostile.incoming() {
            let mut stream = stream.expect("a connection");
            let mut word = [0; 4];
            if stream.read_exact(&mut word).is_ok() && word.is_ascii() && word != [0; 4] {
                let answer = format!("Zookeeper version: {HOSTILE}\nMode: {HOSTILE}\n");
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    let connect = format!("{},{address}", stage.connect);
    let doctor = run(&connect, &["doctor"]).await;
    doctor.coded(0);
    let line = format!("{address}: version ");
    doctor.shows([&line]);
    nothing_is_obeyed("doctor", &doctor.stdout);
}
