//! The promises, each with how it is checked.

pub(crate) mod anew;
pub(crate) mod barring;
pub(crate) mod calm;
pub(crate) mod errors;
pub(crate) mod guarded;
pub(crate) mod loss;
pub(crate) mod observers;
pub(crate) mod release;
pub(crate) mod remains;
pub(crate) mod room;
pub(crate) mod succession;
pub(crate) mod turn;
pub(crate) mod watchers;
pub(crate) mod work;
pub(crate) mod znode;
