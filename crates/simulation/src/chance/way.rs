//! Which way a cut goes.

/// Which way a cut goes: what is cut off can no longer be told of, no longer tell, or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing passes.
    Both,
    /// Nothing passes from clients to servers, or from a follower to its leader.
    Up,
    /// Nothing passes from servers to clients, or from a leader to its follower.
    Down,
}
