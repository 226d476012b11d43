//! The direction of a cut.

/// The direction in which a cut lets nothing pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Nothing passes.
    Both,
    /// Nothing passes from clients to servers, or from a follower to its leader.
    Up,
    /// Nothing passes from servers to clients, or from a leader to its follower.
    Down,
}
