//! `srvr`, `stat` and `srst`: a server's role and progress.

use std::fmt::Write as _;

use super::environment::version;
use super::listing::connection;
use crate::embedded::figures::Figures;
use crate::embedded::member::Member;

/// The role of a server in its ensemble.
pub(in crate::embedded) fn mode(member: &Member) -> &'static str {
    member.shared.with(|world| {
        let servers = &world.servers;
        match (servers.members.len(), servers.leads(member.server)) {
            _ if servers.is_read_only(member.server) => "read-only",
            (1, _) => "standalone",
            (_, true) => "leader",
            (_, false) => "follower",
        }
    })
}

pub(super) fn srvr(member: &Member) -> String {
    let mut text = format!("Zookeeper version: {}\n", version(member));
    write_status(&mut text, member);
    text
}

pub(super) fn stat(member: &Member) -> String {
    let mut text = format!("Zookeeper version: {}\nClients:\n", version(member));
    for outlet in member.connections().values() {
        let _ = writeln!(text, "{}", connection(outlet, true));
    }
    text.push('\n');
    write_status(&mut text, member);
    text
}

pub(super) fn reset(member: &Member) -> String {
    *member.figures() = Figures::default();
    "Server stats reset.\n".to_owned()
}

fn write_status(text: &mut String, member: &Member) {
    let (zxid, nodes) = member.shared.with(|world| {
        let tree = &world.servers.members[member.server].tree;
        // The server counts its root twice.
        (tree.zxid, tree.iter().count() + 1)
    });
    let outstanding = outstanding(member);
    let connections = connections(member);
    let mode = mode(member);
    let figures = member.figures();
    let latency = figures.latency;
    // Writing to a String does not fail.
    let _ = write!(
        text,
        "Latency min/avg/max: {}/{:.4}/{}\nReceived: {}\nSent: {}\nConnections: {connections}\n\
         Outstanding: {outstanding}\nZxid: {zxid:#x}\nMode: {mode}\nNode count: {nodes}\n",
        latency.least(),
        latency.average(),
        latency.most,
        figures.received,
        figures.sent,
    );
    if mode == "leader" {
        text.push_str("Proposal sizes last/min/max: -1/-1/-1\n");
    }
}

/// The number of connections. The connection that asks is one of them.
pub(super) fn connections(member: &Member) -> usize {
    member.connections().len() + 1
}

/// How many requests are still to be answered.
pub(super) fn outstanding(member: &Member) -> usize {
    let connections = member.connections();
    connections.values().map(|it| it.account().2).sum()
}
