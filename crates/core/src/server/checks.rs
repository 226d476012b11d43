//! Checks of arguments before a request is sent.

use crate::invalid_input::InvalidInput;
use crate::server::ensemble::Acl;

/// The largest number of data bytes in one request.
///
/// A server closes the connection if a request is longer than `jute.maxbuffer`, which is 1 MiB by
/// default and counts the whole request.
const MOST_DATA: usize = 1_000_000;

/// Refuses data that is longer than a server accepts by default.
pub(crate) fn check_data(data: &[u8]) -> Result<(), InvalidInput> {
    check_size("data", data.len())
}

/// Refuses a number of data bytes that is larger than a server accepts by default.
pub(crate) fn check_size(subject: &'static str, bytes: usize) -> Result<(), InvalidInput> {
    let problem = "is longer than the 1,000,000 bytes that a server accepts by default";
    match bytes {
        0..=MOST_DATA => Ok(()),
        _ => Err(InvalidInput::new(
            subject,
            format!("of {bytes} bytes"),
            problem,
        )),
    }
}

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
