//! `zkr` beside Curator and kazoo: real libraries, in processes of their own.

use std::path::Path;
use std::process::Stdio;

use serde_json::json;
use tokio::process::{Child, ChildStdin, Command};
use zookeeper_recipes_interop::{Program, ProgramError, Referee, can_run};
use zookeeper_recipes_suite::{LONG, administrator, children, eventually, server};

use crate::support::{ended, files, run, start};

/// Starts a contender of this library, which holds once. It ends with its input at the latest.
fn contender(
    program: &Program,
    mode: &str,
    connect: &str,
    referee: &Referee,
) -> (Child, ChildStdin) {
    let timeout = LONG.as_millis().to_string();
    let (referee, mode) = (referee.address().to_string(), format!("{mode}:1"));
    let child = Command::from(program.command())
        .args([connect, &timeout, "contend", "/shared", &referee])
        .args(["1", "0", &mode])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let mut child = child.expect("it starts");
    let input = child.stdin.take().expect("a pipe");
    (child, input)
}

mod at_night {
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn who_shows_curator_and_kazoo_behind_our_holder_and_they_hold_in_turn() {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("..");
        let curator = Program::curator(&target, &Program::QUICK_JAVA);
        let (curator, kazoo) = match (curator, Program::kazoo(&target)) {
            (Err(missing @ ProgramError::Missing { .. }), _)
            | (_, Err(missing @ ProgramError::Missing { .. })) => {
                can_run("zkr beside Curator and kazoo", &[missing.to_string()]);
                return;
            }
            (curator, kazoo) => (curator.expect("it works"), kazoo.expect("it works")),
        };
        let (server, files) = (server().await, files());
        let (connect, client) = (server.connect_string(), administrator(&server).await);
        let queue = async |length| {
            let listed = async || children(&client, "/shared").await.len() == length;
            eventually("all are in the queue", listed).await;
        };
        let end = files.path().join("end").display().to_string();
        let until_told = r#"until [ -e "$0" ]; do sleep 0.01; done"#;
        let holder = start(&connect, ("lock /shared -- sh -c", [until_told, &end]));
        queue(1).await;
        let referee = Referee::listen(1).expect("a free port");
        let (curator, _input) = contender(&curator, "lock", &connect, &referee);
        queue(2).await;
        let (kazoo, _other_input) = contender(&kazoo, "renamed", &connect, &referee);
        queue(3).await;
        let last = start(&connect, "lock /shared -- true");
        queue(4).await;

        let owner = |command: &str, child: &Child| {
            let id = child.id().expect("it lives");
            let host = rustix::system::uname()
                .nodename()
                .to_string_lossy()
                .into_owned();
            format!("{command}@{host}:{id}")
        };
        let others = ["curator-lock-0", "kazoo-renamed-0"];
        let (first, later) = (owner("sh", &holder), owner("true", &last));
        let who = run(&connect, "who /shared --json").await.json();
        for (place, owner) in [&first, others[0], others[1], &later].iter().enumerate() {
            let row = &who["contenders"][place];
            let waits_for: Vec<_> = (place > 0).then_some(place).into_iter().collect();
            let shown = json!([row["owner"], row["kind"], row["waits_for"]]);
            assert_eq!(shown, json!([owner, "lock", waits_for]), "{who:#}");
        }
        std::fs::write(&end, "").expect("it is written");
        for child in [holder, curator, kazoo, last] {
            let ended = ended(child).await;
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
        let report = referee.report();
        assert_eq!(
            (report.violations, report.entries),
            (vec![], others.map(str::to_owned).to_vec())
        );
        assert!(report.seen[others[0]].contains(&later), "{:?}", report.seen);
    }
}
