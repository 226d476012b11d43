//! What the tests share.

use std::time::Duration;

use zookeeper_recipes_suite::{administrator, assert_nothing_left_in};
use zookeeper_recipes_testkit::Server;

pub(crate) const SESSION_TIMEOUT: Duration = Duration::from_secs(4);

/// Waits until the directory is empty and the server has no watch left.
pub(crate) async fn assert_nothing_left(server: &Server, path: &str) {
    assert_nothing_left_in(server, &administrator(server).await, path).await;
}
