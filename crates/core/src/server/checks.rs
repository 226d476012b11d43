//! What is refused before it is sent.

use crate::invalid_input::InvalidInput;
use crate::server::ensemble::Acl;

/// How many bytes of data one request may carry: a server ends the connection that a longer
/// request comes on (`jute.maxbuffer`, by default 1 MiB with all that is around the data).
const MOST_DATA: usize = 1_000_000;

/// Refuses data that no server takes by default.
pub(crate) fn check_data(data: &[u8]) -> Result<(), InvalidInput> {
    check_size("data", data.len())
}

pub(crate) fn check_size(subject: &'static str, bytes: usize) -> Result<(), InvalidInput> {
    let problem = "is longer than the 1,000,000 bytes that a server takes by default";
    match bytes {
        0..=MOST_DATA => Ok(()),
        _ => Err(InvalidInput::new(
            subject,
            format!("of {bytes} bytes"),
            problem,
        )),
    }
}

/// Refuses an access control list that lets nobody in.
pub(crate) fn check_acl(acl: &[Acl]) -> Result<(), InvalidInput> {
    match acl {
        [] => Err(InvalidInput::new(
            "access control list",
            "[]",
            "lets nobody in",
        )),
        _ => Ok(()),
    }
}
