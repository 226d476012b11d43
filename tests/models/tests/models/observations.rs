//! What a trace shows of the queue.

use std::collections::BTreeMap;

use zookeeper_recipes_core::ensemble::SessionId;
use zookeeper_recipes_models::handoff::{Observed, Read};
use zookeeper_recipes_simulation::{Trace, TraceEntry, TraceKind};

pub(crate) const LOCK: &str = "/lock";

/// The observations of a trace. The name of a process is the number of its contender.
///
/// The remarks `named <znode>` say what each write to the directory names, in their order.
pub(crate) fn observations(trace: &Trace) -> Vec<Observed> {
    let remarks = trace.entries().iter();
    let remarks = remarks.filter(|entry| entry.kind == TraceKind::Remark);
    let mut named = remarks.filter_map(|entry| entry.text.strip_prefix("named "));
    let entries = trace.entries().iter();
    let owners: BTreeMap<SessionId, usize> = entries
        .filter_map(|entry| Some((entry.session?, contender(entry)?)))
        .collect();
    let entries = trace.entries().iter();
    entries
        .filter_map(|entry| match writes_directory(entry) {
            true => named.next().map(|name| Observed::Named(name.to_owned())),
            false => observation(entry, &owners),
        })
        .collect()
}

fn writes_directory(entry: &TraceEntry) -> bool {
    let edit = entry.text.split_once(' ').map(|(_, edit)| edit);
    entry.kind == TraceKind::Transaction
        && edit.is_some_and(|edit| edit.starts_with("set /lock (version "))
}

fn contender(entry: &TraceEntry) -> Option<usize> {
    entry.process.as_deref()?.parse().ok()
}

/// The name of a contender's znode.
fn name(path: &str) -> Option<&str> {
    path.strip_prefix(LOCK)?.strip_prefix('/')
}

fn observation(entry: &TraceEntry, owners: &BTreeMap<SessionId, usize>) -> Option<Observed> {
    match entry.kind {
        TraceKind::Request => request(contender(entry)?, &entry.text),
        TraceKind::Reply => reply(contender(entry)?, &entry.text),
        TraceKind::Event => {
            let (path, event) = entry.text.split_once(' ')?;
            let name = name(path)?.to_owned();
            let deleted = event == "NodeDeleted";
            Some(Observed::Notified(contender(entry)?, name, deleted))
        }
        TraceKind::Transaction => {
            let owner = entry.session.and_then(|id| owners.get(&id)).copied();
            transaction(owner, entry.text.split_once(' ')?.1)
        }
        TraceKind::Connection => match entry.text.as_str() {
            "connected" => Some(Observed::Connected(contender(entry)?)),
            text if text.starts_with("disconnected") => {
                Some(Observed::Disconnected(contender(entry)?))
            }
            _ => None,
        },
        TraceKind::Remark => {
            let (what, index) = entry.text.split_once(' ')?;
            let index = index.parse().ok()?;
            match what {
                "asks" => Some(Observed::Asks(index)),
                "granted" => Some(Observed::Granted(index)),
                "leaves" => Some(Observed::Leaves(index)),
                _ => None,
            }
        }
        _ => None,
    }
}

fn request(index: usize, text: &str) -> Option<Observed> {
    let read = match text.split_once(' ')? {
        ("list", LOCK) => Read::List,
        ("get", LOCK) => Read::Directory,
        ("get", rest) => Read::Watch(name(rest.strip_suffix(" and watch")?)?.to_owned()),
        _ => return None,
    };
    Some(Observed::Sent(index, read))
}

fn reply(index: usize, text: &str) -> Option<Observed> {
    let (request, answer) = text.split_once(": ")?;
    match request.split_once(' ')? {
        ("list", LOCK) => {
            // The names are in quotes.
            let names = answer.split('"').skip(1).step_by(2);
            Some(Observed::Listed(index, names.map(str::to_owned).collect()))
        }
        ("get", rest) => {
            let path = rest.strip_suffix(" and watch").unwrap_or(rest);
            let is_known = path == LOCK || (path != rest && name(path).is_some());
            is_known.then(|| Observed::Found(index, answer != "NoNode"))
        }
        _ => None,
    }
}

fn transaction(owner: Option<usize>, text: &str) -> Option<Observed> {
    if text.starts_with("session expired") || text.starts_with("session closed") {
        return owner.map(Observed::Ended);
    }
    let edits: Vec<&str> = text.split("; ").collect();
    if let ([created, deleted], Some(index)) = (&edits[..], owner) {
        let created = created.strip_prefix("created ");
        if let (Some(created), true) = (created, deleted.starts_with("deleted ")) {
            return Some(Observed::Downgraded(index, name(created)?.to_owned()));
        }
    }
    if edits == ["deleted /lock"] {
        return Some(Observed::Reaped);
    }
    match (edits.last()?.split_once(' ')?, owner) {
        (("created", path), Some(index)) => Some(Observed::Created(index, name(path)?.to_owned())),
        (("deleted", _), _) => deletion(owner, &edits),
        _ => None,
    }
}

/// A transaction may delete several znodes, also in other directories.
fn deletion(owner: Option<usize>, edits: &[&str]) -> Option<Observed> {
    let is_marked = edits.len() == 2 && edits[0].starts_with("set ");
    let deleted = edits
        .iter()
        .filter_map(|edit| edit.strip_prefix("deleted "));
    let names: Vec<String> = deleted.filter_map(name).map(str::to_owned).collect();
    match (names.as_slice(), owner) {
        ([], _) => None,
        ([name], Some(contender)) => Some(Observed::Deleted {
            contender,
            name: name.clone(),
            marked: is_marked,
        }),
        ([name], None) => Some(Observed::DeletedByHand(name.clone())),
        (_, Some(index)) => Some(Observed::DeletedTogether(
            index,
            names.into_iter().collect(),
        )),
        (_, None) => panic!("an operator deletes one znode at a time: {edits:?}"),
    }
}
