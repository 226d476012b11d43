//! One ZooKeeper session: what this process knows of it, and its lease.

mod background;
#[cfg(test)]
#[allow(unreachable_pub, reason = "it is public in the test kit")]
#[path = "../../testkit/src/fake.rs"]
pub(crate) mod fake;
pub(crate) mod late_servers;
pub(crate) mod lease;
pub(crate) mod lease_wait;
pub(crate) mod live_session;
#[cfg(test)]
#[path = "../tests/unit/scripted.rs"]
pub(crate) mod scripted;
