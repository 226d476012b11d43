//! The deletions that nobody waits for.

use std::time::Duration;

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
