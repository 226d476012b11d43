//! What a server answers from its own copy of the tree.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::Permission;

use super::access::{Writer, permit};
use super::member::Member;
use super::state::Servers;
use super::tree::Znode;
use crate::wire::answer::{Answer, Failure};
use crate::wire::connection::ConnectionId;
use crate::wire::message::Arriving;
use crate::wire::request::Request;
use crate::wire::watch_kind::WatchKind;

impl Servers {
    /// Answers a read from the server's own copy.
    pub(super) fn read(&mut self, id: ConnectionId, arriving: Arriving) {
        let Some(server) = self.network.connections.get(&id).map(|it| it.server) else {
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
        } else {
            self.answer(id, server, session, &arriving.request)
        };
        self.reply(id, &arriving, result);
    }

    fn answer(
        &mut self,
        id: ConnectionId,
        at: usize,
        session: i64,
        request: &Request,
    ) -> Result<Answer, Failure> {
        let identities = self.identities.get(&session).cloned().unwrap_or_default();
        let reader = Writer::Session(session, &identities);
        let exists_asks_for_permission = self.options.exists_asks_for_permission();
        let member = &mut self.members[at];
        match request {
            Request::List { path, watch } => list(member, id, path, *watch, &reader),
            Request::Get { path, watch } => get(member, id, path, *watch, &reader),
            Request::Exists { path } => {
                let node = member.tree.get(path);
                if let Some(node) = node.filter(|_| exists_asks_for_permission) {
                    permit(&node.acl, Permission::READ, &reader)?;
                }
                let stat = node.map(Znode::stat);
                member.watches.add(path, WatchKind::Data, id);
                Ok(Answer::Exists(stat))
            }
            Request::GetEach(paths) => get_each(member, paths, &reader),
            Request::RemoveWatch { path, kind } => {
                if member.watches.remove(path, *kind, id) {
                    Ok(Answer::Done)
                } else {
                    Err(Refusal::Other("no such watch".to_owned()).into())
                }
            }
            Request::SetWatches {
                zxid,
                data,
                exists,
                children,
            } => {
                self.set_watches(id, at, *zxid, [data, exists, children]);
                Ok(Answer::Done)
            }
            Request::Read(read) => self.answer_read(id, at, session, read),
            Request::Unknown => Err(Failure::UnknownType),
            _ => Ok(Answer::Done),
        }
    }
}

fn list(
    member: &mut Member,
    id: ConnectionId,
    path: &str,
    watch: bool,
    reader: &Writer<'_>,
) -> Result<Answer, Failure> {
    let node = member.tree.get(path).ok_or(Refusal::NoNode)?;
    permit(&node.acl, Permission::READ, reader)?;
    let names = node.children.iter().cloned().collect();
    if watch {
        member.watches.add(path, WatchKind::Children, id);
    }
    Ok(Answer::Children(names))
}

fn get(
    member: &mut Member,
    id: ConnectionId,
    path: &str,
    watch: bool,
    reader: &Writer<'_>,
) -> Result<Answer, Failure> {
    let node = member.tree.get(path).ok_or(Refusal::NoNode)?;
    permit(&node.acl, Permission::READ, reader)?;
    let answer = Answer::Data(node.data.clone(), node.stat());
    if watch {
        member.watches.add(path, WatchKind::Data, id);
    }
    Ok(answer)
}

fn get_each(member: &Member, paths: &[String], reader: &Writer<'_>) -> Result<Answer, Failure> {
    let mut nodes = Vec::new();
    for path in paths {
        nodes.push(match member.tree.get(path) {
            None => None,
            Some(node) => {
                permit(&node.acl, Permission::READ, reader)?;
                Some((node.data.clone(), node.stat()))
            }
        });
    }
    Ok(Answer::Each(nodes))
}
