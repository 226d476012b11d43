//! What a server answers to reads, from its own copy of the tree.

use zookeeper_recipes_protocol::{
    Acl, AddWatchMode, AuthId, ClientInfo, ErrorCode, Operation, Outcome, Permission, ReadRequest,
    ReplyBody, RequestBody,
};

use super::access::{Writer, permit};
use super::member::Member;
use super::paths;
use super::state::Servers;
use super::tree::{Tree, Znode};
use super::watches::{WatchKind, WatchMode};
use crate::wire::message::{Answer, Arriving};
use crate::wire::network::ConnectionId;
use crate::wire::request;

/// The most bytes of the answers to several reads in one request.
const LARGEST_ANSWER: usize = 64 << 20;

impl Servers {
    /// Answers a read from the server's own copy.
    pub(super) fn read(&mut self, id: ConnectionId, arriving: &Arriving) {
        let Some(server) = self.network.server_of(id) else {
            return;
        };
        let session = self.session_on(id);
        let answer = if arriving.is_expired {
            Err(ErrorCode::SessionExpired)
        } else if arriving.fate.throttled {
            Err(ErrorCode::ThrottledOp)
        } else if arriving.fate.hide_outcome {
            Err(ErrorCode::OperationTimeout)
        } else {
            self.answer_read(id, server, session, &arriving.request.body)
        };
        self.reply(id, arriving, answer);
    }

    /// True if the server knows that the session of a request that has just arrived is over.
    pub(super) fn is_expired_at(&mut self, server: usize, id: ConnectionId) -> bool {
        let session = self.session_on(id);
        let reads_only = self.ends.get(&id).is_some_and(|end| end.reads_only);
        let sessions = self.sessions_of(server).filter(|_| !reads_only);
        sessions.is_some_and(|sessions| sessions.get(&session).is_none_or(|record| record.closing))
    }

    fn answer_read(
        &mut self,
        id: ConnectionId,
        at: usize,
        session: i64,
        request: &RequestBody,
    ) -> Answer {
        let identities = self.identities.get(&session).cloned().unwrap_or_default();
        let reader = Writer::Session(session, &identities);
        let exists_asks_for_permission = self.options.exists_asks_for_permission();
        let member = &mut self.members[at];
        match request {
            RequestBody::Exists(request) if request.path.contains('\0') => {
                Err(ErrorCode::BadArguments)
            }
            RequestBody::Exists(request) => {
                let node = member.tree.get(&request.path);
                if let Some(node) = node.filter(|_| exists_asks_for_permission) {
                    readable(node, &reader)?;
                }
                let stat = node.map(|node| ReplyBody::Stat(node.stat()));
                watch_if(member, request, WatchKind::Data, id);
                stat.ok_or(ErrorCode::NoNode)
            }
            RequestBody::GetData(request) => {
                let node = readable_at(&member.tree, &request.path, &reader)?;
                let (data, stat) = (node.data.clone(), node.stat());
                watch_if(member, request, WatchKind::Data, id);
                Ok(ReplyBody::Data { data, stat })
            }
            RequestBody::GetChildren(it) | RequestBody::GetChildren2(it) => {
                let node = readable_at(&member.tree, &it.path, &reader)?;
                let (children, stat) = (node.children.iter().cloned().collect(), node.stat());
                watch_if(member, it, WatchKind::Children, id);
                Ok(match request {
                    RequestBody::GetChildren(_) => ReplyBody::Children { children },
                    _ => ReplyBody::Children2 { children, stat },
                })
            }
            RequestBody::GetAcl(request) => acl(&member.tree, &request.path, &reader),
            RequestBody::GetAllChildrenNumber(request) => {
                readable_at(&member.tree, &request.path, &reader)?;
                let count = count_below(&member.tree, &request.path);
                Ok(ReplyBody::AllChildrenNumber { count })
            }
            RequestBody::GetEphemerals(request) => {
                let mut paths = member.tree.ephemerals(session);
                let prefix = request.prefix.as_deref().unwrap_or_default();
                let prefix = if prefix.trim() == "/" { "" } else { prefix };
                paths.retain(|path| prefix.trim().is_empty() || path.starts_with(prefix));
                Ok(ReplyBody::Ephemerals { paths })
            }
            RequestBody::WhoAmI => Ok(ReplyBody::WhoAmI {
                identities: identities.iter().map(client_info).collect(),
            }),
            RequestBody::MultiRead(reads) => answers(&member.tree, reads, &reader),
            other => self.change_watches(id, at, other),
        }
    }

    fn change_watches(&mut self, id: ConnectionId, at: usize, request: &RequestBody) -> Answer {
        let watches = &mut self.members[at].watches;
        match request {
            RequestBody::AddWatch(request) => {
                let mode = match request.mode {
                    AddWatchMode::Persistent => WatchMode::Persistent,
                    AddWatchMode::PersistentRecursive => WatchMode::Recursive,
                    _ => return Err(ErrorCode::MarshallingError),
                };
                watches.add_persistent(&request.path, id, mode);
                return Ok(ReplyBody::AddWatch(ErrorCode::Ok));
            }
            RequestBody::RemoveWatches(it) | RequestBody::CheckWatches(it) => {
                let of = watches.of_type(it.kind);
                let of = of.ok_or(ErrorCode::MarshallingError)?;
                let found = match request {
                    RequestBody::RemoveWatches(_) => watches.remove(&it.path, of, id),
                    _ => watches.contains(&it.path, of, id),
                };
                return found
                    .then_some(ReplyBody::Empty)
                    .ok_or(ErrorCode::NoWatcher);
            }
            RequestBody::SetWatches(it) => {
                let lists = [&it.data_watches[..], &it.exist_watches, &it.child_watches];
                self.set_watches(id, at, it.relative_zxid, lists);
            }
            RequestBody::SetWatches2(it) => {
                let lists = [&it.data_watches[..], &it.exist_watches, &it.child_watches];
                self.set_watches(id, at, it.relative_zxid, lists);
                for (paths, mode) in [
                    (&it.persistent_watches, WatchMode::Persistent),
                    (&it.persistent_recursive_watches, WatchMode::Recursive),
                ] {
                    for path in paths.iter().filter(|_| self.ends.contains_key(&id)) {
                        self.members[at].watches.add_persistent(path, id, mode);
                    }
                }
            }
            RequestBody::Other { opcode, .. } if request::is_unknown(*opcode) => {
                return Err(ErrorCode::Unimplemented);
            }
            RequestBody::Other { .. } => return Err(ErrorCode::MarshallingError),
            _ => {}
        }
        Ok(ReplyBody::Empty)
    }
}

fn watch_if(member: &mut Member, request: &ReadRequest, kind: WatchKind, id: ConnectionId) {
    if request.watch {
        member.watches.add(&request.path, kind, id, WatchMode::Once);
    }
}

fn readable(node: &Znode, reader: &Writer<'_>) -> Result<(), ErrorCode> {
    permit(&node.acl, Permission::READ, reader)
}

fn readable_at<'a>(
    tree: &'a Tree,
    path: &str,
    reader: &Writer<'_>,
) -> Result<&'a Znode, ErrorCode> {
    let node = tree.get(path).ok_or(ErrorCode::NoNode)?;
    readable(node, reader)?;
    Ok(node)
}

/// The access control list as a reader sees it. Only a reader that may change it sees the digests.
fn acl(tree: &Tree, path: &str, reader: &Writer<'_>) -> Answer {
    let node = tree.get(path).ok_or(ErrorCode::NoNode)?;
    let administers = permit(&node.acl, Permission::ADMIN, reader).is_ok();
    if !administers {
        readable(node, reader)?;
    }
    let mask = |entry: &Acl| {
        let mut entry = entry.clone();
        if let Some((user, _)) = entry.id.id.split_once(':') {
            if &*entry.id.scheme == "digest" && !administers {
                entry.id.id = format!("{user}:x").into();
            }
        }
        entry
    };
    Ok(ReplyBody::Acl {
        acl: node.acl.iter().map(mask).collect(),
        stat: node.stat(),
    })
}

fn client_info(identity: &AuthId) -> ClientInfo {
    let user = match &*identity.scheme {
        "digest" => identity.id.split(':').next().unwrap_or_default(),
        _ => &identity.id,
    };
    ClientInfo {
        auth_scheme: identity.scheme.to_string(),
        user: user.to_owned(),
    }
}

fn count_below(tree: &Tree, path: &str) -> i32 {
    let path = paths::of_node(path);
    let below = |other: &str| {
        let rest = other.strip_prefix(path.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.len() > 1 && rest.starts_with('/'))
    };
    tree.iter().filter(|(other, _)| below(other)).count() as i32
}

/// The answers to several reads, unless they are too large together.
///
/// One request can name a large znode many thousand times.
fn answers(tree: &Tree, reads: &[Operation], reader: &Writer<'_>) -> Answer {
    let mut left = LARGEST_ANSWER;
    let mut results = Vec::with_capacity(reads.len());
    for read in reads {
        let result = match read {
            Operation::GetData(it) => {
                readable_at(tree, &it.path, reader).map(|node| Outcome::GetData {
                    data: node.data.clone(),
                    stat: node.stat(),
                })
            }
            Operation::GetChildren(it) => {
                readable_at(tree, &it.path, reader).map(|node| Outcome::GetChildren {
                    children: node.children.iter().cloned().collect(),
                })
            }
            _ => return Err(ErrorCode::MarshallingError),
        };
        let size = result.as_ref().map_or(0, size);
        left = left.checked_sub(size).ok_or(ErrorCode::BadArguments)?;
        results.push(result.unwrap_or_else(Outcome::Error));
    }
    Ok(ReplyBody::Multi(results))
}

/// About how many bytes the result of one of several reads has.
fn size(result: &Outcome) -> usize {
    match result {
        Outcome::GetChildren { children } => children
            .iter()
            .map(|name| size_of::<String>() + name.len())
            .sum(),
        Outcome::GetData { data, .. } => data.as_ref().map_or(0, Vec::len),
        _ => 0,
    }
}
