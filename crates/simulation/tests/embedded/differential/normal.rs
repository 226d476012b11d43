//! What was seen, without what two servers cannot have in common.

use std::collections::BTreeSet;

use zookeeper_recipes_protocol::{
    ErrorCode, EventType, Outcome, Reply, ReplyBody, Stat, WatcherEvent,
};

/// What came of one step.
pub(super) struct Seen {
    replies: Vec<Reply>,
    /// The events of each session.
    events: Vec<Vec<WatcherEvent>>,
    /// The ids of the sessions.
    sessions: Vec<i64>,
}

/// What came of one step, as it can be compared.
#[derive(Debug, PartialEq)]
pub(super) struct Normal {
    /// The error code, the place of the transaction among all that the server has shown, the body.
    replies: Vec<(ErrorCode, usize, ReplyBody)>,
    events: Vec<Vec<(EventType, String)>>,
}

impl Seen {
    pub(super) fn new(
        replies: Vec<Reply>,
        events: Vec<Vec<WatcherEvent>>,
        sessions: Vec<i64>,
    ) -> Seen {
        Seen {
            replies,
            events,
            sessions,
        }
    }
}

impl Normal {
    pub(super) fn of(mut seen: Vec<Seen>) -> Vec<Normal> {
        let mut zxids = BTreeSet::new();
        for reply in seen.iter_mut().flat_map(|seen| &mut seen.replies) {
            zxids.insert(reply.header.zxid);
            for stat in stats(&mut reply.body) {
                zxids.extend([stat.czxid, stat.mzxid, stat.pzxid]);
            }
        }
        let place = |zxid: i64| zxids.range(..zxid).count();
        let all = seen.into_iter();
        all.map(|seen| seen.normal(&place)).collect()
    }
}

impl Seen {
    fn normal(self, place: &impl Fn(i64) -> usize) -> Normal {
        let Seen {
            replies,
            events,
            sessions,
        } = self;
        let replies = replies.into_iter().map(|Reply { header, mut body }| {
            for stat in stats(&mut body) {
                for zxid in [&mut stat.czxid, &mut stat.mzxid, &mut stat.pzxid] {
                    *zxid = place(*zxid) as i64;
                }
                stat.ctime = 0;
                stat.mtime = 0;
                let owner = sessions.iter().position(|it| *it == stat.ephemeral_owner);
                stat.ephemeral_owner = match (owner, stat.ephemeral_owner) {
                    (Some(session), _) => 1 + session as i64,
                    (None, 0) => 0,
                    (None, _) => -1,
                };
            }
            without_order(&mut body);
            (header.error, place(header.zxid), body)
        });
        let events = events.into_iter().map(|events| {
            let events = events.into_iter();
            events.map(|event| (event.kind, event.path)).collect()
        });
        Normal {
            replies: replies.collect(),
            events: events.collect(),
        }
    }
}

/// All metadata in a reply.
fn stats(body: &mut ReplyBody) -> Vec<&mut Stat> {
    match body {
        ReplyBody::Create2 { stat, .. }
        | ReplyBody::Stat(stat)
        | ReplyBody::Data { stat, .. }
        | ReplyBody::Acl { stat, .. }
        | ReplyBody::Children2 { stat, .. } => vec![stat],
        ReplyBody::Multi(results) => results
            .iter_mut()
            .filter_map(|result| match result {
                Outcome::Create2 { stat, .. }
                | Outcome::SetData { stat }
                | Outcome::GetData { stat, .. } => Some(stat),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// Sorts what has no order.
fn without_order(body: &mut ReplyBody) {
    match body {
        ReplyBody::Children { children: names }
        | ReplyBody::Children2 {
            children: names, ..
        }
        | ReplyBody::Ephemerals { paths: names } => names.sort(),
        ReplyBody::WhoAmI { identities } => {
            identities.sort_by_key(|it| (it.auth_scheme.clone(), it.user.clone()));
        }
        ReplyBody::Acl { acl, .. } => acl.sort_by_key(|entry| entry.id.id.clone()),
        ReplyBody::Multi(results) => {
            for result in results {
                if let Outcome::GetChildren { children } = result {
                    children.sort();
                }
            }
        }
        _ => {}
    }
}
