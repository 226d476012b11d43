//! `zkr lead`: terms, losses, the next candidate.

use zookeeper_recipes_core::SessionId;
use zookeeper_recipes_suite::eventually;

use crate::support::{Stage, ended, line_in, read, runs};

/// Writes the process id and the token, and goes on.
const TERM: &str = r#"echo "$$ $ZKR_FENCING_TOKEN" >> "$1"; sleep 60"#;

/// The session of the leader, as `zkr leader` shows it.
async fn leaders_session(stage: &Stage) -> SessionId {
    let shown = stage.run(&["leader", "/leader", "--json"]).await;
    let leader: serde_json::Value = serde_json::from_str(&shown.stdout).expect("JSON");
    let session = leader["session"].as_str().expect("somebody leads");
    let digits = session.strip_prefix("0x").expect("hexadecimal");
    SessionId(i64::from_str_radix(digits, 16).expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_campaigns_again_after_a_loss() {
    let stage = Stage::new();
    let file = stage.file("terms");
    let name = file.to_str().expect("text");
    let lead = [
        "lead", "/leader", "--id", "a", "--", "sh", "-c", TERM, "sh", name,
    ];
    let leader = stage.start(&lead);
    let first = line_in(&file).await;
    let session = leaders_session(&stage).await;
    stage.server.administrator().expire(session);
    eventually("it leads again", async || read(&file).lines().count() == 2).await;
    let terms = read(&file);
    let term = |line: &str| {
        let (id, token) = line.split_once(' ').expect("two words");
        (id.to_owned(), token.parse::<i64>().expect("a token"))
    };
    let (first, second) = (
        term(first.trim()),
        term(terms.lines().nth(1).expect("a line")),
    );
    assert!(!runs(&first.0), "the command of the first term was stopped");
    assert!(
        runs(&second.0) && second.1 > first.1,
        "{first:?} {second:?}"
    );
    drop(leader);
}

#[tokio::test(flavor = "multi_thread")]
async fn candidate_that_leads_once_ends_after_a_loss_and_the_next_one_leads() {
    let stage = Stage::new();
    let file = stage.file("terms");
    let name = file.to_str().expect("text");
    let lead = [
        "lead", "/leader", "--id", "a", "--once", "--", "sh", "-c", TERM, "sh", name,
    ];
    let leader = stage.start(&lead);
    let first = line_in(&file).await;
    let next = stage.start(&["lead", "/leader", "--id", "b", "--", "sh", "-c", "exit 5"]);
    stage.queue("/leader", 2).await;
    let session = leaders_session(&stage).await;
    stage.server.administrator().expire(session);
    let leader = ended(leader).await;
    assert!(
        leader.failed_with(81).contains("the command was stopped"),
        "{leader:?}"
    );
    assert!(!runs(first.split(' ').next().expect("an id")));
    assert_eq!(ended(next).await.code, Some(5));
}
