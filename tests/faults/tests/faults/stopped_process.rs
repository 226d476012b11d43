//! A holder whose process is stopped, and continued when another holds.

use std::io::{BufRead, Write};
use std::process::Stdio;
use std::time::Instant;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::ChildStdout;
use zookeeper_recipes_core::{FencingToken, Hold};
use zookeeper_recipes_suite::{
    KINDS, LONG, SHORT, administrator, create, in_time, server, session,
};
use zookeeper_recipes_testkit::history::History;

use crate::support::{acquire, acquired, assert_nothing_left, held, queue_length};

/// Set for the child process, which holds, and looks when it gets a line.
const HOLDER: &str = "ZOOKEEPER_RECIPES_STOPPED_HOLDER";
const TEST: &str =
    "stopped_process::holder_that_was_stopped_knows_at_first_look_and_is_refused_everywhere";
const SCENARIO: &str = "stopped";
/// Begins each line of the holder, among the lines of the test harness.
const SAYS: &str = "the holder says: ";

/// Whether a store accepts a write with this token.
fn accepts(store: &mut History, token: FencingToken) -> bool {
    // What a holder of this process holds is not asked for.
    let (accepted, _) = store.stored(u64::MAX, 1, token);
    accepted
}

async fn be_the_holder(connect_string: &str) {
    let session = session(connect_string, SHORT).await;
    let mut holds: Vec<Hold> = Vec::new();
    for &kind in KINDS {
        let hold = held(kind.on(&session, SCENARIO)).await;
        say(&format!("{}", hold.fencing_token().get()));
        holds.push(hold);
    }
    // The line is there when this thread continues, so it looks first.
    let looked = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut line)
            .expect("a line");
        let looks: Vec<bool> = holds.iter().map(|hold| hold.is_held()).collect();
        (looks, holds)
    });
    let (looks, holds) = looked.await.expect("no panic");
    for (held, hold) in looks.into_iter().zip(holds) {
        let write = hold.transaction().set_data("/stored", b"stale");
        let written = write.commit().await.is_ok();
        say(&format!("{held} {written}"));
    }
}

fn say(what: &str) {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "\n{SAYS}{what}").expect("it is heard");
    stdout.flush().expect("it is heard");
}

async fn hear(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    let heard = async {
        loop {
            let line = lines.next_line().await.expect("it can be read");
            let line = line.expect("the holder has not ended");
            if let Some(said) = line.strip_prefix(SAYS) {
                return said.to_owned();
            }
        }
    };
    in_time("the holder speaks", heard).await
}

/// Starts the process of the holder.
fn holder(connect_string: &str) -> tokio::process::Child {
    tokio::process::Command::new(std::env::current_exe().expect("a test binary"))
        .args(["--exact", TEST, "--nocapture"])
        .env(HOLDER, connect_string)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("the holder starts")
}

/// Stops a process, and waits until all its threads stand still.
fn stop(id: Pid) {
    kill_process(id, Signal::STOP).expect("it can be stopped");
    // The signal takes effect only when one of its threads gets to run.
    let states = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    waitid(WaitId::Pid(id), states).expect("it is stopped");
}

#[tokio::test(flavor = "multi_thread")]
async fn holder_that_was_stopped_knows_at_first_look_and_is_refused_everywhere() {
    if let Ok(connect_string) = std::env::var(HOLDER) {
        return be_the_holder(&connect_string).await;
    }
    let server = server().await;
    let administrator = administrator(&server).await;
    create(&administrator, "/stored").await;
    let mut holder = holder(&server.connect_string());
    let mut commands = holder.stdin.take().expect("a pipe");
    let mut said = BufReader::new(holder.stdout.take().expect("a pipe")).lines();
    let mut stores: Vec<History> = KINDS.iter().map(|_| History::new(1)).collect();
    let mut old_tokens = Vec::new();
    for store in &mut stores {
        let token = hear(&mut said).await.parse::<i64>().expect("a token");
        old_tokens.push(FencingToken::from(token));
        assert!(accepts(store, FencingToken::from(token)));
    }
    let rival = session(&server, LONG).await;
    let mut successions = Vec::new();
    for &kind in KINDS {
        successions.push(acquire(kind.rival_on(&rival, SCENARIO)));
        queue_length(kind, &*kind.rival_on(&rival, SCENARIO), 2).await;
    }

    let id = i32::try_from(holder.id().expect("it lives")).expect("an id");
    let id = Pid::from_raw(id).expect("an id");
    stop(id);
    let stopped = Instant::now();
    let mut holds = Vec::new();
    for (succession, store) in successions.into_iter().zip(&mut stores) {
        let hold = acquired("the next one", succession).await;
        assert!(accepts(store, hold.fencing_token()), "it is a newer one");
        holds.push(hold);
    }
    hold_still_until(stopped + 2 * SHORT).await;
    commands.write_all(b"look\n").await.expect("it is written");
    kill_process(id, Signal::CONT).expect("it continues");

    for ((kind, store), old_token) in KINDS.iter().zip(&mut stores).zip(old_tokens) {
        let looked = hear(&mut said).await;
        // A lock of one znode has no guarded writes.
        let (held, written) = looked.split_once(' ').expect("two words");
        assert_eq!(held, "false", "{kind:?}: at first look");
        assert_eq!(written, "false", "{kind:?}: the guarded write");
        assert!(!accepts(store, old_token), "{kind:?}: the old token");
    }
    let (data, _) = administrator
        .get_data("/stored")
        .await
        .expect("it is there");
    assert!(data.is_empty(), "nothing stale was written");
    for (kind, hold) in KINDS.iter().zip(holds) {
        assert!(hold.is_held(), "{kind:?}: {:?}", hold.state());
        hold.release().await.expect("it is released");
    }
    let status = in_time("the holder ends", holder.wait()).await;
    assert!(status.expect("it can be awaited").success());
    for &kind in KINDS {
        assert_nothing_left(&server, &administrator, kind, SCENARIO).await;
    }
}

/// Being stopped for so long is what is tested.
async fn hold_still_until(moment: Instant) {
    tokio::time::sleep(moment.saturating_duration_since(Instant::now())).await;
}
