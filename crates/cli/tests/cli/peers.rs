//! `zkr` beside Curator and kazoo: real libraries, in processes of their own.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use zookeeper_client::Client;
use zookeeper_recipes_interop::{Program, ProgramError, Referee, Task, can_run};
use zookeeper_recipes_suite::{
    Address, LONG, TestServer, administrator, children, eventually, in_time, on_both_servers,
};

use crate::support::{ended, files, run, start};

on_both_servers!(
    who_shows_curator_and_kazoo_behind_our_holder_and_they_read_our_owner,
    leader_and_who_show_a_latch_and_a_transfer_leaves_it_its_turn,
);

const PATH: &str = "/shared";

const CURATORS: &str = "curator-lock-0";
const LATCH: &str = "curator-latch-0";

/// Waits for the file that its argument names.
const UNTIL_TOLD: &str = r#"until [ -e "$1" ]; do sleep 0.01; done"#;

/// A queue that contenders of several languages share.
struct Shared {
    connect: String,
    client: Client,
    curator: Program,
    kazoo: Program,
    referee: Referee,
    _server: TestServer,
}

impl Shared {
    /// `None` if the machine lacks Curator or kazoo.
    async fn new(server: TestServer) -> Option<Shared> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
        let curator = unless_missing(Program::curator(&target, &Program::QUICK_JAVA));
        let kazoo = unless_missing(Program::kazoo(&target));
        let missing = [&curator, &kazoo].into_iter();
        let missing: Vec<String> = missing
            .filter_map(|program| program.clone().err())
            .collect();
        if !can_run("zkr beside Curator and kazoo", &missing) {
            return None;
        }
        Some(Shared {
            connect: server.address(),
            client: administrator(&server).await,
            curator: curator.ok()?,
            kazoo: kazoo.ok()?,
            referee: Referee::listen(1).expect("there is a port"),
            _server: server,
        })
    }

    /// Starts contenders that have one turn each.
    fn peer(&self, program: &Program, mode: &str, count: usize, stay: Duration) -> Child {
        let task = Task {
            connect_string: self.connect.clone(),
            path: PATH,
            session_timeout: LONG,
            turns: 1,
            stay,
        };
        let referee = self.referee.address().to_string();
        let child = Command::from(program.command())
            .args(task.arguments(&referee, &[(mode, count)]))
            // They end when it does.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn();
        child.expect("it starts")
    }

    fn zkr(&self, arguments: &[&str]) -> Child {
        start(&self.connect, arguments)
    }

    /// What `zkr` prints with these arguments.
    async fn printed(&self, arguments: &[&str]) -> String {
        let ended = run(&self.connect, arguments).await;
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
        ended.stdout
    }

    /// The contenders, as `zkr who --json` shows them.
    async fn contenders(&self) -> Vec<Value> {
        let text = self.printed(&["who", PATH, "--json"]).await;
        let object: Value = serde_json::from_str(&text).expect("JSON");
        object["contenders"].as_array().expect("a list").clone()
    }

    /// Starts our holder, which holds until this file is there.
    async fn holder(&self, output: &Path) -> Child {
        let name = output.to_str().expect("text");
        let holder = self.zkr(&["lock", PATH, "--", "sh", "-c", UNTIL_TOLD, "sh", name]);
        self.queue(1).await;
        holder
    }

    /// Waits until so many contenders are in the queue.
    async fn queue(&self, length: usize) {
        let what = format!("{length} contenders are in the queue");
        let counted = async || children(&self.client, PATH).await.len() == length;
        eventually(&what, counted).await;
    }

    /// What this contender has listed inside.
    fn seen_by(&self, name: &str) -> Vec<String> {
        let seen = self.referee.report().seen;
        seen[name].iter().cloned().collect()
    }

    /// Who has come in, in that order. The call fails the test if two were inside at once.
    fn entered(&self) -> Vec<String> {
        let report = self.referee.report();
        assert_eq!(report.violations, [""; 0]);
        report.entries
    }
}

/// Fails the test if the program is there and does not work.
fn unless_missing(program: Result<Program, ProgramError>) -> Result<Program, String> {
    match program {
        Err(ProgramError::Broken(why)) => panic!("{why}"),
        program => program.map_err(|missing| missing.to_string()),
    }
}

/// Waits until a program has ended without a failure.
async fn succeeded(mut child: Child) {
    // A contender fails if its standard input ends before its last turn.
    let _input = child.stdin.take();
    let ended = ended(child).await;
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

/// The text by which a contender of `zkr` says that it runs this program.
fn owner(program: &str, zkr: &Child) -> String {
    let host = rustix::system::uname();
    let host = host.nodename().to_str().expect("text").to_owned();
    format!("{program}@{host}:{}", zkr.id().expect("it runs"))
}

/// The state, the kind and the owner in each row of a table.
fn rows(table: &str) -> Vec<[String; 3]> {
    let row = |line: &str| {
        let cells = line.split("  ").map(str::trim);
        let mut cells = cells.filter(|cell| !cell.is_empty()).skip(1);
        std::array::from_fn(|_| cells.next().unwrap_or_default().to_owned())
    };
    table.lines().skip(2).map(row).collect()
}

/// The rows of a queue in which each contender waits for the one before it.
fn one_after_the_other(kind: &str, owners: &[&str]) -> Vec<[String; 3]> {
    let owners = owners.iter().enumerate();
    let row = |(place, owner): (usize, &&str)| {
        let state = match place {
            0 => "holds".to_owned(),
            place => format!("waits for {place}"),
        };
        [state, kind.to_owned(), (*owner).to_owned()]
    };
    owners.map(row).collect()
}

/// That `zkr who` shows these owners in this order, the first of which holds, for people and for
/// programs.
async fn assert_shown(shared: &Shared, recipe: &str, kind: &str, owners: &[&str]) {
    let table = shared.printed(&["who", PATH]).await;
    let waiters = match owners.len() - 1 {
        1 => "1 waits".to_owned(),
        waiters => format!("{waiters} wait"),
    };
    let headline = format!("{PATH}: {recipe}, 1 holds, {waiters}");
    assert_eq!(table.lines().next(), Some(&*headline));
    assert_eq!(rows(&table), one_after_the_other(kind, owners), "{table}");

    let contenders = shared.contenders().await;
    let shown = contenders.iter().map(|it| {
        json!([
            it["position"],
            it["kind"],
            it["owner"],
            it["holds"],
            it["waits_for"]
        ])
    });
    let expected = owners.iter().enumerate().map(|(place, owner)| {
        let waits_for: Vec<usize> = (place > 0).then_some(place).into_iter().collect();
        json!([place + 1, kind, owner, place == 0, waits_for])
    });
    assert_eq!(shown.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    let tokens = contenders.iter().map(|it| it["fencing_token"].as_i64());
    assert!(tokens.is_sorted_by(|one, next| one < next));
}

async fn who_shows_curator_and_kazoo_behind_our_holder_and_they_read_our_owner(server: TestServer) {
    let Some(shared) = Shared::new(server).await else {
        return;
    };
    let files = files();
    let output = files.path().join("output");
    let holder = shared.holder(&output).await;
    let curator = shared.peer(&shared.curator, "lock", 1, Duration::ZERO);
    shared.queue(2).await;
    let kazoo = shared.peer(&shared.kazoo, "renamed", 1, Duration::ZERO);
    shared.queue(3).await;
    let last = shared.zkr(&["lock", PATH, "--", "true"]);
    shared.queue(4).await;

    let (first_owner, last_owner) = (owner("sh", &holder), owner("true", &last));
    let kazoos = "kazoo-renamed-0";
    let owners = [&*first_owner, CURATORS, kazoos, &last_owner];
    assert_shown(&shared, "exclusive lock", "lock", &owners).await;

    std::fs::write(&output, "").expect("it is written");
    for child in [holder, curator, kazoo, last] {
        succeeded(child).await;
    }
    assert_eq!(shared.entered(), [CURATORS, kazoos]);
    assert_eq!(shared.seen_by(CURATORS), [CURATORS, kazoos, &last_owner]);
    assert_eq!(shared.seen_by(kazoos), [kazoos, &last_owner]);
}

async fn leader_and_who_show_a_latch_and_a_transfer_leaves_it_its_turn(server: TestServer) {
    let Some(shared) = Shared::new(server).await else {
        return;
    };
    let leader = ["lead", PATH, "--id", "first", "--", "sleep", "60"];
    let _leader = shared.zkr(&leader);
    shared.queue(1).await;
    // Longer than an observer needs to see it.
    let latch = shared.peer(&shared.curator, "latch", 1, Duration::from_secs(2));
    shared.queue(2).await;
    let _successor = shared.zkr(&["lead", PATH, "--id", "chosen", "--", "sleep", "60"]);
    shared.queue(3).await;
    assert_shown(&shared, "election", "lead", &["first", LATCH, "chosen"]).await;
    let shown = shared.printed(&["leader", PATH]).await;
    assert!(shown.starts_with("first leads: token "), "{shown}");

    let mut follower = shared.zkr(&["leader", PATH, "--follow", "--json"]);
    let mut lines = BufReader::new(follower.stdout.take().expect("a pipe")).lines();
    let mut next = async || loop {
        let line = in_time("a line", lines.next_line()).await;
        let line = line.expect("it is read").expect("another line");
        let leader: Value = serde_json::from_str(&line).expect("JSON");
        if let Some(id) = leader["id"].as_str() {
            return id.to_owned();
        }
    };
    assert_eq!(next().await, "first");
    let transfer = ["leader", PATH, "--transfer-to", "chosen"];
    let shown = shared.printed(&transfer).await;
    assert!(shown.starts_with("chosen leads: token "), "{shown}");
    assert_eq!([next().await, next().await], [LATCH, "chosen"]);
    assert_eq!(shared.entered(), [LATCH]);
    succeeded(latch).await;
    shared.queue(2).await;
    assert_shown(&shared, "election", "lead", &["chosen", "first"]).await;
}
