//! The deletions that nobody waits for.

use std::time::Duration;

use tracing::Level;
use zookeeper_recipes_suite::log::Log;

use super::*;
use crate::live::scripted::Scripted;

#[tokio::test(start_paused = true)]
async fn deletions_without_an_answer_are_of_znodes_that_nobody_else_can_own() {
    let (live, script) = Scripted::open(Duration::from_millis(1));
    let mut leftovers = Leftovers {
        paths: vec!["/lock/me-0000000001".into(), "/lock/me-".into()],
        named: Vec::new(),
    };
    leftovers.send_deletions(&*live.server().expect("it is open"));
    assert_eq!(leftovers.paths, ["/lock/me-".into()]);
    assert_eq!(script.deletions(), ["/lock/me-0000000001"]);
}

#[tokio::test(start_paused = true)]
async fn znodes_that_stay_are_named_and_nothing_is_said_if_none_does() {
    let (live, _script) = Scripted::open(Duration::ZERO);
    let log = Log::up_to(Level::WARN);
    let _listening = tracing::subscriber::set_default(log.clone());
    let mut leftovers = Leftovers::default();
    leftovers.report(&live);
    assert!(log.lines().is_empty());
    leftovers.paths.push("/lock/me-".into());
    leftovers.report(&live);
    let lines = log.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].message, "znodes left");
    assert_eq!(lines[0].fields["znodes"], r#"["/lock/me-"]"#);
}
