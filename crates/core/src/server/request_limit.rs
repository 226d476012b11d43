//! The limit on requests: a server closes the connection at a request that is too long.
//!
//! The client would send such a request again over each new connection, and no other request of the
//! session would get through. So the [connection](zookeeper_recipes_connection) measures each
//! request, and does not send one that is too long.

use std::sync::Arc;

use zookeeper_recipes_connection::{RequestError, check_length};
use zookeeper_recipes_protocol::{
    Acl, AuthId, CreateMode, MultiOperation as Operation, Permission, RequestBody,
};

use crate::invalid_input::InvalidInput;
use crate::server::error::{Refusal, ServerError};
use crate::server::values::no_reply;

/// The least limit: it leaves room for the requests that a session sends by itself.
///
/// The longest of them are the watches that the client sets after a reconnect, 128 KiB, and a
/// transaction with two paths, each of 64 KiB with its chroot.
pub(crate) const MIN: usize = 256 * 1024;

/// The part of the limit that the paths of one read may fill together.
const SHARE_OF_A_READ: usize = 2;

/// More than the bytes of a read beside its path, or of credentials beside their text.
const OVERHEAD: usize = 64;

/// The largest request that the servers of an ensemble accept, and the chroot of its paths.
#[derive(Clone, Debug)]
pub struct RequestLimit {
    bytes: usize,
    /// Empty if there is none.
    pub(crate) chroot: Arc<str>,
}

impl RequestLimit {
    /// The limit of servers with this `jute.maxbuffer`, for paths below this chroot.
    pub fn new(chroot: &str, bytes: usize) -> RequestLimit {
        let chroot = chroot.trim_end_matches('/').into();
        RequestLimit { bytes, chroot }
    }

    /// Refuses a transaction of these operations, and each of them alone, if it is too long.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooLong`].
    pub fn check(&self, operations: &[Operation]) -> Result<(), ServerError> {
        let operations = operations.iter().cloned().map(|mut operation| {
            operation.path_mut().insert_str(0, &self.chroot);
            operation
        });
        let transaction = RequestBody::Multi(operations.collect());
        self.check_at_server(transaction).map_err(no_reply)
    }

    /// Refuses a request that is too long. Its paths are those at the server.
    ///
    /// # Errors
    ///
    /// [`RequestError::RequestTooLong`].
    pub fn check_at_server(&self, request: RequestBody) -> Result<(), RequestError> {
        check_length(request, self.bytes)
    }

    /// Splits the paths of a read into requests that are not too long.
    ///
    /// If one path is too long, it is the only request, which then is refused.
    pub fn reads<'p>(&self, mut paths: &'p [String]) -> Vec<&'p [String]> {
        let length = |path: &String| self.chroot.len() + path.len() + OVERHEAD;
        if let Some(long) = paths.iter().find(|path| length(path) > self.bytes) {
            return vec![std::slice::from_ref(long)];
        }
        let mut requests = Vec::new();
        while !paths.is_empty() {
            let mut left = self.bytes / SHARE_OF_A_READ;
            let fits = |path: &&String| match left.checked_sub(length(path)) {
                Some(rest) => {
                    left = rest;
                    true
                }
                None => false,
            };
            let number = paths.iter().take_while(fits).count().max(1);
            let (request, rest) = paths.split_at(number);
            requests.push(request);
            paths = rest;
        }
        requests
    }

    /// Refuses a contender if no request could create its znode, or could replace it by another.
    ///
    /// `name` is as long as the name of the znode in the directory `path`. The session may add an
    /// entry of its own to the access control list.
    pub(crate) fn check_contender(
        &self,
        path: &str,
        name: &str,
        data: &[u8],
        acl: &[Acl],
    ) -> Result<(), InvalidInput> {
        let path = format!("{path}/{name}");
        let own = Acl::new(Permission::ALL, AuthId::authed());
        let acl: Vec<Acl> = acl.iter().cloned().chain([own]).collect();
        let create = Operation::create(&path, data, CreateMode::EphemeralSequential, acl);
        match self.check(&[Operation::delete(path), create]) {
            Err(ServerError::Refused(Refusal::TooLong(problem))) => Err(problem),
            _ => Ok(()),
        }
    }
}

/// Refuses a limit that leaves no room for the session's own requests, or that no server can have.
pub(crate) fn check_option(limit: usize) -> Result<(), InvalidInput> {
    const MAX: usize = i32::MAX as usize;
    if (MIN..=MAX).contains(&limit) {
        return Ok(());
    }
    let given = of_bytes(limit);
    let problem = format!("is not between {MIN} and {MAX}");
    Err(InvalidInput::new("jute.maxbuffer", given, problem))
}

/// Refuses credentials that no request could carry. The error does not contain them.
pub(crate) fn check_credentials(
    limit: usize,
    scheme: &str,
    credentials: &[u8],
) -> Result<(), InvalidInput> {
    let bytes = OVERHEAD + scheme.len() + credentials.len();
    if bytes <= limit {
        return Ok(());
    }
    let problem = format!("are longer than the {limit} bytes that the servers accept");
    Err(InvalidInput::new("credentials", of_bytes(bytes), problem))
}

fn of_bytes(bytes: usize) -> String {
    format!("of {bytes} bytes")
}
