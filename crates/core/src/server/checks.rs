//! The default and the checks of arguments, before a request is sent.

use std::time::Duration;

use crate::invalid_input::InvalidInput;
use crate::server::ensemble::{Acl, AuthId, Permission};

/// An access control list that permits everything to everyone, which is ZooKeeper's default.
pub(crate) fn open_acl() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}

pub(crate) fn check_time_limit(max_hold: Option<Duration>) -> Result<(), InvalidInput> {
    match max_hold {
        Some(Duration::ZERO) => {
            let problem = "must not be zero";
            Err(InvalidInput::new("time limit of a hold", "0", problem))
        }
        _ => Ok(()),
    }
}
