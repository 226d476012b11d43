//! `cons`, `dump`, `wchs` and `wchp`: connections, sessions, ephemeral znodes and watches.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::embedded::member::Member;
use crate::embedded::outlet::{Account, Outlet};
use crate::server::tree::Owner;
use crate::server::watches::WatchKind;

/// The line of a connection.
pub(super) fn connection(outlet: &Outlet, brief: bool) -> String {
    let Account {
        session,
        timeout,
        unanswered,
        received,
        sent,
    } = outlet.account();
    let address = outlet.address;
    let of_session = match session {
        0 => String::new(),
        _ if brief => String::new(),
        _ => format!(",sid={session:#x},to={}", timeout.as_millis()),
    };
    format!(" /{address}[1](queued={unanswered},recved={received},sent={sent}{of_session})")
}

pub(super) fn cons(member: &Member) -> String {
    let connections = member.connections();
    let lines = connections.values().map(|it| connection(it, false) + "\n");
    lines.collect::<String>() + "\n"
}

pub(super) fn dump(member: &Member) -> String {
    let (sessions, ephemerals) = member.shared.with(|world| {
        let servers = &world.servers;
        let sessions: Vec<(i64, u128)> = servers
            .sessions
            .iter()
            .map(|(session, record)| (*session, record.expires.as_millis()))
            .collect();
        let mut ephemerals: BTreeMap<i64, Vec<String>> = BTreeMap::new();
        for (path, node) in servers.members[member.server].tree.iter() {
            if let Owner::Session(session) = node.owner {
                ephemerals.entry(session).or_default().push(path.clone());
            }
        }
        (sessions, ephemerals)
    });
    let mut by_expiry: BTreeMap<u128, Vec<i64>> = BTreeMap::new();
    for (session, expires) in &sessions {
        by_expiry.entry(*expires).or_default().push(*session);
    }
    let mut text = "SessionTracker dump:\n".to_owned();
    // Writing to a String does not fail.
    let _ = writeln!(
        text,
        "Session Sets ({})/({}):",
        by_expiry.len(),
        sessions.len()
    );
    for (expires, sessions) in by_expiry {
        let _ = writeln!(text, "{} expire at {expires} ms:", sessions.len());
        for session in sessions {
            let _ = writeln!(text, "\t{session:#x}");
        }
    }
    let _ = writeln!(
        text,
        "ephemeral nodes dump:\nSessions with Ephemerals ({}):",
        ephemerals.len()
    );
    for (session, paths) in ephemerals {
        let _ = writeln!(text, "{session:#x}:");
        for path in paths {
            let _ = writeln!(text, "\t{path}");
        }
    }
    let connections = member.connections();
    let _ = writeln!(
        text,
        "Connections dump:\nConnections Sets (1)/({}):",
        connections.len()
    );
    for outlet in connections.values() {
        let _ = writeln!(text, "\tip: /{}", outlet.address);
    }
    text
}

/// The watches on data, as the four-letter words show them: paths with their sessions.
fn data_watches(member: &Member) -> BTreeMap<String, BTreeSet<i64>> {
    member.shared.with(|world| {
        let servers = &world.servers;
        let mut watches: BTreeMap<String, BTreeSet<i64>> = BTreeMap::new();
        for (path, kind, connection) in servers.members[member.server].watches.iter() {
            if kind == WatchKind::Data {
                let sessions = watches.entry(path.to_owned()).or_default();
                sessions.insert(servers.session_on(connection));
            }
        }
        watches
    })
}

pub(super) fn wchs(member: &Member) -> String {
    let watches = data_watches(member);
    let sessions: BTreeSet<i64> = watches.values().flatten().copied().collect();
    let total: usize = watches.values().map(BTreeSet::len).sum();
    format!(
        "{} connections watching {} paths\nTotal watches:{total}\n",
        sessions.len(),
        watches.len()
    )
}

pub(super) fn wchp(member: &Member) -> String {
    let mut text = String::new();
    for (path, sessions) in data_watches(member) {
        let _ = writeln!(text, "{path}");
        for session in sessions {
            let _ = writeln!(text, "\t{session:#x}");
        }
    }
    text + "\n"
}
