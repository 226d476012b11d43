//! The deletions that nobody waits for.

use super::*;
use crate::contender::Identity;
use crate::live::scripted::*;
use crate::path::NodePath;

#[tokio::test(start_paused = true)]
async fn deletions_without_an_answer_are_of_znodes_that_nobody_else_can_own() {
    let (live, script) = Scripted::open(Duration::from_millis(1));
    let log = Log::up_to(Level::WARN);
    let _listening = tracing::subscriber::set_default(log.clone());
    let left = |znodes| Leftovers {
        live: live.clone(),
        server: script.server(),
        znodes,
    };
    let numbered = || Kind::Contender(name("/lock/me-0000000001"));
    drop(left(vec![numbered()]));
    assert!(log.lines().is_empty(), "none may stay");
    let directory = NodePath::new("/lock").expect("a good path");
    let unnumbered = Kind::Contender(ContenderName::new(
        &directory,
        Identity::from_random_bits(0),
    ));
    drop(left(vec![numbered(), unnumbered]));
    assert_eq!(script.deletions(), ["/lock/me-0000000001"; 2]);
    let lines = log.lines();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0].message, "znodes left");
    let prefix = Identity::from_random_bits(0).path("/lock", "");
    assert_eq!(lines[0].fields["znodes"], format!("[{prefix:?}]"));
}
