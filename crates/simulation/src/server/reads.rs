//! What a server answers to reads, from its own copy of the tree.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, Permission, Stat};

use super::access::{Writer, permit};
use super::member::Member;
use super::paths;
use super::state::Servers;
use super::tree::{Tree, Znode};
use crate::wire::answer::{Answer, Failure, Names};
use crate::wire::message::Arriving;
use crate::wire::network::ConnectionId;
use crate::wire::read::{Read, WatchKind, WatchMode};
use crate::wire::request::Request;

/// The most bytes of the answers to several reads in one request.
const LARGEST_ANSWER: usize = 64 << 20;

impl Servers {
    /// Answers a read from the server's own copy.
    pub(super) fn read(&mut self, id: ConnectionId, arriving: Arriving) {
        let Some(server) = self.network.server_of(id) else {
            return;
        };
        let session = self.session_on(id);
        let reads_only = self.ends.get(&id).is_some_and(|end| end.reads_only);
        let sessions = self.sessions_of(server).filter(|_| !reads_only);
        let expired_here = sessions
            .is_some_and(|sessions| sessions.get(&session).is_none_or(|record| record.closing));
        let result = if expired_here {
            Err(Failure::SessionExpired)
        } else if arriving.throttled {
            Err(Refusal::Throttled.into())
        } else if arriving.hide_outcome {
            Err(Failure::OutcomeUnknown)
        } else {
            match &arriving.request {
                Request::Read(read) => self.answer_read(id, server, session, read),
                Request::Unknown => Err(Failure::UnknownType),
                _ => Ok(Answer::Done),
            }
        };
        self.reply(id, &arriving, result);
    }

    pub(super) fn answer_read(
        &mut self,
        id: ConnectionId,
        at: usize,
        session: i64,
        read: &Read,
    ) -> Result<Answer, Failure> {
        let identities = self.identities.get(&session).cloned().unwrap_or_default();
        let reader = Writer::Session(session, &identities);
        let exists_asks_for_permission = self.options.exists_asks_for_permission();
        let member = &mut self.members[at];
        match read {
            Read::Stat { path, watch } => {
                let asks = exists_asks_for_permission;
                let stat = stat_if_any(&member.tree, path, asks.then_some(&reader))?;
                watch_if(member, *watch, path, WatchKind::Data, id);
                Ok(Answer::Exists(stat))
            }
            Read::Data { path, watch } => {
                let answer = data(&member.tree, path, &reader)?;
                watch_if(member, *watch, path, WatchKind::Data, id);
                Ok(answer)
            }
            Read::Children { path, watch } => {
                let node = readable_at(&member.tree, path, &reader)?;
                let names = Names::of(node.children.iter());
                let stat = node.stat();
                watch_if(member, *watch, path, WatchKind::Children, id);
                Ok(Answer::ChildrenAndStat(names, stat))
            }
            Read::Acl { path } => acl(&member.tree, path, &reader),
            Read::CountBelow { path } => {
                readable_at(&member.tree, path, &reader)?;
                Ok(Answer::Count(count_below(&member.tree, path)))
            }
            Read::Ephemerals { prefix } => {
                let mut paths = member.tree.ephemerals(session);
                let prefix = if prefix.trim() == "/" { "" } else { prefix };
                paths.retain(|path| prefix.trim().is_empty() || path.starts_with(prefix));
                Ok(Answer::Children(paths))
            }
            Read::Identities => Ok(Answer::Identities(identities)),
            Read::Each(reads) => answers(&member.tree, reads, &reader),
            Read::AddWatch(path, mode) => {
                member.watches.add_persistent(path, id, *mode);
                Ok(Answer::WatchAdded)
            }
            Read::RemoveWatches(path, kind) => done_if(member.watches.remove(path, *kind, id)),
            Read::CheckWatches(path, kind) => done_if(member.watches.contains(path, *kind)),
            Read::SetWatches(watches) => {
                self.set_watches(id, at, watches);
                Ok(Answer::Done)
            }
            Read::Malformed => Err(Failure::Malformed),
        }
    }
}

fn done_if(found: bool) -> Result<Answer, Failure> {
    found.then_some(Answer::Done).ok_or(Failure::NoWatch)
}

fn watch_if(member: &mut Member, watch: bool, path: &str, kind: WatchKind, id: ConnectionId) {
    if watch {
        member.watches.add(path, kind, id, WatchMode::Once);
    }
}

fn readable(node: &Znode, reader: &Writer<'_>) -> Result<(), Refusal> {
    permit(&node.acl, Permission::READ, reader)
}

fn readable_at<'a>(tree: &'a Tree, path: &str, reader: &Writer<'_>) -> Result<&'a Znode, Refusal> {
    let node = tree.get(path).ok_or(Refusal::NoNode)?;
    readable(node, reader)?;
    Ok(node)
}

/// The metadata of a znode, if there is one; with a reader only if the reader may read it.
fn stat_if_any(
    tree: &Tree,
    path: &str,
    reader: Option<&Writer<'_>>,
) -> Result<Option<Stat>, Refusal> {
    if path.contains('\0') {
        return Err(Refusal::BadArguments("no valid path".to_owned()));
    }
    let node = tree.get(path);
    if let (Some(node), Some(reader)) = (node, reader) {
        readable(node, reader)?;
    }
    Ok(node.map(Znode::stat))
}

fn data(tree: &Tree, path: &str, reader: &Writer<'_>) -> Result<Answer, Refusal> {
    let node = readable_at(tree, path, reader)?;
    Ok(Answer::DataIfAny(node.data.clone(), node.stat()))
}

/// The access control list as a reader sees it. Only a reader that may change it sees the digests.
fn acl(tree: &Tree, path: &str, reader: &Writer<'_>) -> Result<Answer, Failure> {
    let node = tree.get(path).ok_or(Refusal::NoNode)?;
    let administers = permit(&node.acl, Permission::ADMIN, reader).is_ok();
    if !administers {
        readable(node, reader)?;
    }
    let mask = |entry: &Acl| match entry.id().split_once(':') {
        Some((user, _)) if entry.scheme() == "digest" && !administers => {
            let masked = AuthId::new("digest", &format!("{user}:x"));
            Acl::new(entry.permission(), masked)
        }
        _ => entry.clone(),
    };
    let entries = node.acl.iter().map(mask).collect();
    Ok(Answer::Acl(entries, node.stat()))
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
fn answers(tree: &Tree, reads: &[Read], reader: &Writer<'_>) -> Result<Answer, Failure> {
    let mut left = LARGEST_ANSWER;
    let mut answers = Vec::with_capacity(reads.len());
    for read in reads {
        let answer = each(tree, read, reader);
        let size = answer.as_ref().map_or(0, size);
        left = left.checked_sub(size).ok_or_else(|| {
            let problem = format!("the answers have more than {LARGEST_ANSWER} bytes");
            Refusal::BadArguments(problem)
        })?;
        answers.push(answer);
    }
    Ok(Answer::Answers(answers))
}

/// About how many bytes an answer to one of several reads has.
fn size(answer: &Answer) -> usize {
    match answer {
        Answer::Children(names) => names
            .iter()
            .map(|name| size_of::<String>() + name.len())
            .sum(),
        Answer::DataIfAny(data, _) => data.as_ref().map_or(0, Vec::len),
        _ => 0,
    }
}

fn each(tree: &Tree, read: &Read, reader: &Writer<'_>) -> Result<Answer, Refusal> {
    match read {
        Read::Data { path, .. } => data(tree, path, reader),
        Read::Children { path, .. } => {
            let node = readable_at(tree, path, reader)?;
            Ok(Answer::Children(node.children.iter().cloned().collect()))
        }
        _ => Err(Refusal::Unimplemented),
    }
}
