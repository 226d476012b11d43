//! What core sees of the states of a connection, and of the results of a transaction.

use super::*;

/// So servers answer the create of a container among other operations (ZOOKEEPER-4026).
#[test]
fn znode_whose_create_is_answered_with_its_path_alone_has_no_known_czxid() {
    let path = "/app/locks".to_owned();
    let mut reply = ReplyBody::Multi(vec![Outcome::Create { path }]);
    put_below_chroot("/app".len(), &mut reply);
    let ReplyBody::Multi(mut results) = reply else {
        panic!("it is another reply");
    };
    let Some(Outcome::Create2 { path, stat }) = results.pop().map(with_stat) else {
        panic!("it is another result");
    };
    assert_eq!((&*path, stat.czxid), ("/locks", -1));
}

#[test]
fn timeout_that_was_shortened_ends_the_session_also_without_a_connection() {
    let opened_with = Duration::from_secs(10);
    let disconnected = |seconds| ConnectionState::Disconnected {
        timeout: Duration::from_secs(seconds),
    };
    let shortened = ConnectionState::Ended(SessionEnd::TimeoutShortened);
    assert_eq!(seen_with(disconnected(4), opened_with), shortened);
    let kept = disconnected(10);
    assert_eq!(seen_with(kept, opened_with), kept);
}

/// A server refuses a container that is asked for by the operation of any other znode.
#[test]
fn container_of_a_transaction_has_an_operation_of_its_own() {
    let operation = |mode| Operation::create("/a", [], mode, []);
    let container = operation(CreateMode::Container);
    assert!(matches!(container, Operation::CreateContainer(_)));
    let persistent = operation(CreateMode::Persistent);
    assert!(matches!(persistent, Operation::Create2(_)));
}
