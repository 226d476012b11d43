//! Checks of arguments before a request is sent.

use crate::invalid_input::InvalidInput;
use crate::server::ensemble::Acl;

/// Refuses an access control list without an entry.
pub(crate) fn check_acl(acl: &[Acl]) -> Result<(), InvalidInput> {
    match acl {
        [] => Err(InvalidInput::new(
            "access control list",
            "[]",
            "is empty, so nobody could use the znode",
        )),
        _ => Ok(()),
    }
}
