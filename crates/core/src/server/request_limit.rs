//! The limit on requests: a server closes the connection at a request that is too long.
//!
//! The client would send such a request again over each new connection, and no other request of the
//! session would get through. So each request is measured before it is sent.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt, ready};
use futures_util::stream::BoxStream;

use crate::invalid_input::InvalidInput;
use crate::server::acl::{Acl, AuthId};
use crate::server::ensemble::{
    ConnectionState, CreateMode, Created, Ensemble, Exchange, Node, Operation, Outcome, Reply,
    Resumable, ServerSession, SessionId, Stat, TransactionError, Watch,
};
use crate::server::error::{Refusal, ServerError};

/// ZooKeeper's `jute.maxbuffer` without a configuration, in bytes.
pub(crate) const USUAL: usize = 0xf_ffff;

/// The least limit: it leaves room for the requests that a session sends by itself.
///
/// The longest of them are the watches that the client sets after a reconnect, 128 KiB, and a
/// transaction with two paths, each of 64 KiB with its chroot.
pub(crate) const LEAST: usize = 256 * 1024;

/// The part of the limit that the paths of one read may fill together.
const SHARE_OF_A_READ: usize = 2;

/// The bytes of a request, and of each operation in it, that are counted nowhere else.
///
/// That is more than the client sends. A server adds some bytes when it passes a write on, such as
/// the number of a sequential znode.
const HEAD: usize = 64;

/// The largest request that the servers of an ensemble accept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestLimit {
    bytes: usize,
    /// The length of the chroot, which the client puts before each path.
    chroot: usize,
}

impl RequestLimit {
    pub(crate) fn new(ensemble: &dyn Ensemble, bytes: usize) -> RequestLimit {
        RequestLimit {
            bytes,
            chroot: ensemble.chroot().len(),
        }
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
        let znode = path.len() + "/".len() + name.len();
        let both = self.size().path(znode).data(data).acl(acl).path(znode);
        self.check(both.entry(&AuthId::authed()))
    }

    fn size(&self) -> Size {
        Size {
            chroot: self.chroot,
            ..Size::default()
        }
    }

    fn check(&self, size: Size) -> Result<(), InvalidInput> {
        let bytes = size.bytes();
        if bytes <= self.bytes {
            return Ok(());
        }
        let Size {
            paths, data, acl, ..
        } = size;
        let problem = format!(
            "is longer than the {} bytes that the servers accept (jute.maxbuffer): paths of \
             {paths} bytes, data of {data} bytes, access control lists of {acl} bytes",
            self.bytes
        );
        Err(InvalidInput::new("request", of_bytes(bytes), problem))
    }
}

/// Refuses a limit that leaves no room for the session's own requests, or that no server can have.
pub(crate) fn check_option(limit: usize) -> Result<(), InvalidInput> {
    const MOST: usize = i32::MAX as usize;
    if (LEAST..=MOST).contains(&limit) {
        return Ok(());
    }
    let problem = format!("is not between {LEAST} and {MOST}");
    Err(InvalidInput::new(
        "jute.maxbuffer",
        of_bytes(limit),
        problem,
    ))
}

/// Refuses credentials that no request could carry. The error does not contain them.
pub(crate) fn check_credentials(
    limit: usize,
    scheme: &str,
    credentials: &[u8],
) -> Result<(), InvalidInput> {
    let bytes = HEAD + scheme.len() + credentials.len();
    if bytes <= limit {
        return Ok(());
    }
    let problem = format!("are longer than the {limit} bytes that the servers accept");
    Err(InvalidInput::new("credentials", of_bytes(bytes), problem))
}

fn of_bytes(bytes: usize) -> String {
    format!("of {bytes} bytes")
}

/// An upper bound of the bytes of a request.
#[derive(Clone, Copy, Default)]
struct Size {
    chroot: usize,
    operations: usize,
    paths: usize,
    data: usize,
    acl: usize,
}

impl Size {
    /// Adds an operation on a path of this length.
    fn path(mut self, length: usize) -> Size {
        self.operations += 1;
        self.paths += self.chroot + length;
        self
    }

    fn data(mut self, data: &[u8]) -> Size {
        self.data += data.len();
        self
    }

    fn acl(self, acl: &[Acl]) -> Size {
        let entries = acl.iter().map(Acl::auth_id);
        entries.fold(self, |size, auth_id| size.entry(auth_id))
    }

    /// Adds an entry of an access control list.
    ///
    /// The server replaces the scheme `auth` by all identities of the session.
    fn entry(mut self, auth_id: &AuthId) -> Size {
        const NUMBERS: usize = 16;
        const IDENTITIES: usize = 256;
        self.acl += NUMBERS + auth_id.scheme().len() + auth_id.id().len();
        if auth_id.scheme() == AuthId::authed().scheme() {
            self.acl += IDENTITIES;
        }
        self
    }

    fn operation(self, operation: &Operation) -> Size {
        match operation {
            Operation::Check { path, .. } | Operation::Delete { path, .. } => self.path(path.len()),
            Operation::SetData { path, data, .. } => self.path(path.len()).data(data),
            Operation::Create {
                path, data, acl, ..
            } => self.path(path.len()).data(data).acl(acl),
        }
    }

    fn bytes(&self) -> usize {
        HEAD * (1 + self.operations) + self.paths + self.data + self.acl
    }
}

/// A session that refuses a request that is longer than the servers accept.
#[derive(Debug)]
pub(crate) struct LimitedSession {
    server: Arc<dyn ServerSession>,
    limit: RequestLimit,
}

impl LimitedSession {
    pub(crate) fn new(server: Arc<dyn ServerSession>, limit: RequestLimit) -> LimitedSession {
        LimitedSession { server, limit }
    }

    fn check(&self, size: Size) -> Result<(), ServerError> {
        let checked = self.limit.check(size);
        checked.map_err(|problem| ServerError::Refused(Refusal::TooLong(problem)))
    }

    /// Sends a request that consists of one path, if it is not too long.
    fn at<'a, T: Send + 'a>(
        &'a self,
        path: &'a str,
        send: impl FnOnce(&'a dyn ServerSession, &'a str) -> Reply<'a, T>,
    ) -> Reply<'a, T> {
        match self.check(self.limit.size().path(path.len())) {
            Ok(()) => send(&*self.server, path),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    /// Splits the paths of a read into requests that are not too long.
    fn in_requests<'p>(&self, mut paths: &'p [String]) -> impl Iterator<Item = &'p [String]> {
        let most = self.limit.bytes / SHARE_OF_A_READ;
        let none = self.limit.size();
        std::iter::from_fn(move || {
            let mut size = none;
            let fits = |path: &&String| {
                size = size.path(path.len());
                size.bytes() <= most
            };
            let number = paths.iter().take_while(fits).count().max(1);
            let (request, rest) = paths.split_at_checked(number)?;
            paths = rest;
            Some(request)
        })
    }
}

impl ServerSession for LimitedSession {
    fn id(&self) -> SessionId {
        self.server.id()
    }

    fn timeout(&self) -> Duration {
        self.server.timeout()
    }

    fn state(&self) -> ConnectionState {
        self.server.state()
    }

    fn states(&self) -> BoxStream<'static, ConnectionState> {
        self.server.states()
    }

    fn connection(&self) -> Option<u64> {
        self.server.connection()
    }

    fn orders_events(&self) -> bool {
        self.server.orders_events()
    }

    fn own_identity(&self) -> Option<AuthId> {
        self.server.own_identity()
    }

    fn detach(&self) -> Option<Resumable> {
        self.server.detach()
    }

    fn create<'a>(
        &'a self,
        path: &'a str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
    ) -> Reply<'a, Created> {
        match self.check(self.limit.size().path(path.len()).data(data).acl(acl)) {
            Ok(()) => self.server.create(path, data, mode, acl),
            Err(error) => ready(Err(error)).boxed(),
        }
    }

    fn delete<'a>(&'a self, path: &'a str) -> Reply<'a, ()> {
        self.at(path, |server, path| server.delete(path))
    }

    fn list<'a>(&'a self, path: &'a str) -> Reply<'a, Vec<String>> {
        self.at(path, |server, path| server.list(path))
    }

    fn list_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<String>, Watch)> {
        self.at(path, |server, path| server.list_and_watch(path))
    }

    fn get<'a>(&'a self, path: &'a str) -> Reply<'a, Node> {
        self.at(path, |server, path| server.get(path))
    }

    fn get_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Vec<u8>, Stat, Watch)> {
        self.at(path, |server, path| server.get_and_watch(path))
    }

    fn exists_and_watch<'a>(&'a self, path: &'a str) -> Reply<'a, (Option<Stat>, Watch)> {
        self.at(path, |server, path| server.exists_and_watch(path))
    }

    fn transact<'a>(
        &'a self,
        operations: &[Operation],
    ) -> BoxFuture<'a, Result<Vec<Outcome>, TransactionError>> {
        let size = operations.iter().fold(self.limit.size(), Size::operation);
        match self.check(size) {
            Ok(()) => self.server.transact(operations),
            Err(error) => {
                let operation = None;
                ready(Err(TransactionError { operation, error })).boxed()
            }
        }
    }

    fn get_each<'a>(&'a self, paths: &[String]) -> Reply<'a, Vec<Option<Node>>> {
        for path in paths {
            if let Err(error) = self.check(self.limit.size().path(path.len())) {
                return ready(Err(error)).boxed();
            }
        }
        let requests = self.in_requests(paths);
        let replies: Vec<_> = requests.map(|paths| self.server.get_each(paths)).collect();
        async move {
            let mut nodes = Vec::new();
            for reply in replies {
                nodes.append(&mut reply.await?);
            }
            Ok(nodes)
        }
        .boxed()
    }

    fn sync<'a>(&'a self, path: &'a str) -> Reply<'a, Exchange> {
        self.at(path, |server, path| server.sync(path))
    }

    fn prove(&self) -> Reply<'_, Exchange> {
        self.server.prove()
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use zookeeper_recipes_protocol as wire;

    use super::*;
    use crate::server::acl::Permission;

    /// The bytes of a request that follow its length, as the client encodes them.
    fn on_the_wire(body: wire::RequestBody) -> usize {
        let mut frame = Vec::new();
        wire::Request { xid: 1, body }.encode_frame(&mut frame);
        frame.len() - wire::FRAME_HEADER
    }

    fn create(chroot: &str, operation: &Operation) -> Option<wire::CreateRequest> {
        let Operation::Create {
            path, data, acl, ..
        } = operation
        else {
            return None;
        };
        let entry = |entry: &Acl| wire::Acl {
            permissions: 31,
            id: wire::Id {
                scheme: entry.scheme().to_owned(),
                id: entry.id().to_owned(),
            },
        };
        Some(wire::CreateRequest {
            path: format!("{chroot}{path}"),
            data: Some(data.clone()),
            acl: acl.iter().map(entry).collect(),
            mode: wire::CreateMode::EphemeralSequential,
        })
    }

    fn multi(chroot: &str, operation: &Operation) -> wire::MultiOperation {
        let at = |path: &str| format!("{chroot}{path}");
        match operation {
            Operation::Check { path, .. } => wire::MultiOperation::Check(wire::CheckRequest {
                path: at(path),
                version: 1,
            }),
            Operation::Delete { path, .. } => wire::MultiOperation::Delete(wire::DeleteRequest {
                path: at(path),
                version: 1,
            }),
            Operation::SetData { path, data, .. } => {
                wire::MultiOperation::SetData(wire::SetDataRequest {
                    path: at(path),
                    data: Some(data.clone()),
                    version: 1,
                })
            }
            Operation::Create { .. } => {
                wire::MultiOperation::Create2(create(chroot, operation).expect("it is a create"))
            }
        }
    }

    fn any_operation() -> impl Strategy<Value = Operation> {
        let path = || "/\\PC{0,20}";
        let version = || Just(None);
        let entry = ("[a-z]{0,9}|auth", "\\PC{0,20}")
            .prop_map(|(scheme, id)| Acl::new(Permission::ALL, AuthId::new(&scheme, &id)));
        prop_oneof![
            (path(), version()).prop_map(|(path, version)| Operation::Check { path, version }),
            (path(), version()).prop_map(|(path, version)| Operation::Delete { path, version }),
            (path(), vec(any::<u8>(), 0..50), version()).prop_map(|(path, data, version)| {
                Operation::SetData {
                    path,
                    data,
                    version,
                }
            }),
            (path(), vec(any::<u8>(), 0..50), vec(entry, 0..4)).prop_map(|(path, data, acl)| {
                Operation::Create {
                    path,
                    data,
                    mode: CreateMode::EphemeralSequential,
                    acl,
                }
            }),
        ]
    }

    proptest! {
        #[test]
        fn no_request_is_longer_than_its_size(
            operations in vec(any_operation(), 0..6),
            chroot in "(/[a-z]{1,300}){0,2}",
        ) {
            let none = Size { chroot: chroot.len(), ..Size::default() };
            let size = operations.iter().fold(none, Size::operation).bytes();
            let multi = operations.iter().map(|operation| multi(&chroot, operation)).collect();
            let sent = on_the_wire(wire::RequestBody::Multi(multi));
            prop_assert!(sent + 10 * operations.len() <= size, "{} of {}", sent, size);
            for operation in &operations {
                if let Some(create) = create(&chroot, operation) {
                    let sent = on_the_wire(wire::RequestBody::Create2(create));
                    prop_assert!(sent <= none.operation(operation).bytes());
                }
                let (Operation::Check { path, .. }
                | Operation::Delete { path, .. }
                | Operation::SetData { path, .. }
                | Operation::Create { path, .. }) = operation;
                let path = format!("{chroot}{path}");
                let size = Size::default().path(path.len()).bytes();
                let read = wire::ReadRequest { path, watch: true };
                prop_assert!(on_the_wire(wire::RequestBody::GetData(read)) <= size);
            }
        }
    }
}
