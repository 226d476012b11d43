//! The log of a test has each event of the test.

use std::thread;

use tracing::Level;
use tracing::subscriber::set_default;
use zookeeper_recipes_suite::log::Log;

#[test]
fn event_that_a_thread_without_a_log_was_first_to_report_is_kept() {
    let report = || tracing::info!(target: "zookeeper_recipes", "reported");
    let log = Log::up_to(Level::INFO);
    let _listening = set_default(log.clone());
    thread::spawn(report).join().expect("no panic");
    report();
    assert_eq!(log.lines().len(), 1);
}
