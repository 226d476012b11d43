//! The limit on requests: a server closes the connection at a request that is too long.

use zookeeper_recipes_protocol::{Acl, Operation, Request, RequestBody};

use crate::error::RequestError;

/// The bytes that servers may add to a request, and to each operation in it, when they pass it on.
///
/// An example is the number of a sequential znode.
const ADDED: usize = 32;

/// The bytes of all identities of a session, by which a server replaces the scheme `auth`.
const IDENTITIES: usize = 256;

/// Checks that servers with this limit accept the request, without sending it.
///
/// # Errors
///
/// [`RequestError::RequestTooLong`].
pub fn check_length(body: &RequestBody, limit: usize) -> Result<(), RequestError> {
    let length = body.encoded_length().saturating_add(added(body));
    match length <= limit {
        true => Ok(()),
        false => Err(RequestError::RequestTooLong { length, limit }),
    }
}

/// Appends the frame of a request, or nothing if servers with this limit may refuse the request.
pub(crate) fn append(
    request: &Request,
    limit: usize,
    to: &mut Vec<u8>,
) -> Result<(), RequestError> {
    let added = added(&request.body);
    let appended = request.encode_frame_within(limit.saturating_sub(added), to);
    appended.map_err(|length| RequestError::RequestTooLong {
        length: length.saturating_add(added),
        limit,
    })
}

fn added(body: &RequestBody) -> usize {
    match body {
        RequestBody::Multi(operations) | RequestBody::MultiRead(operations) => {
            let each = operations.iter().map(|operation| match operation {
                Operation::Create2(create) | Operation::CreateContainer(create) => {
                    ADDED + identities(&create.acl)
                }
                _ => ADDED,
            });
            ADDED + each.sum::<usize>()
        }
        RequestBody::Create2(create) | RequestBody::CreateContainer(create) => {
            ADDED + identities(&create.acl)
        }
        _ => ADDED,
    }
}

fn identities(acl: &[Acl]) -> usize {
    let entries = acl.iter().filter(|entry| &*entry.id.scheme == "auth");
    entries.count() * IDENTITIES
}

#[cfg(test)]
#[path = "../../tests/unit/request_limit.rs"]
mod tests;
