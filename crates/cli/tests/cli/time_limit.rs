//! A command that runs longer than `--max-hold` allows.

use futures_util::future::join_all;

use crate::support::{Stage, ended, line_in};

const HANGS: &str = r#"echo begun > "$1"; while :; do sleep 0.01; done"#;

#[tokio::test(flavor = "multi_thread")]
async fn command_that_runs_longer_than_at_most_is_stopped_and_the_next_one_runs() {
    let stage = Stage::new();
    let verbs: [&[&str]; 4] = [
        &["lock", "/lock"],
        &["lock", "/rwlock", "--write"],
        &["semaphore", "/permits", "--permits", "1"],
        &["lead", "/leader", "--id", "one", "--once"],
    ];
    join_all(verbs.map(async |verb: &[&str]| {
        let begun = stage.file(&verb[..2].join("").replace('/', "-"));
        let limit = ["--max-hold", "2s", "--grace", "200ms", "--"];
        let command = ["sh", "-c", HANGS, "sh", begun];
        let hangs = stage.start([verb, &limit, &command].concat());
        line_in(begun).await;
        let next = stage.run([verb, &["--", "true"]].concat()).await;
        assert_eq!(next.code, Some(0), "{next:?}");
        let hangs = ended(hangs).await;
        assert_ne!(hangs.code, Some(0), "{hangs:?}");
        assert!(hangs.stderr.contains("--max-hold 2s"), "{hangs:?}");
    }))
    .await;
}
