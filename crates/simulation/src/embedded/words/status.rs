//! `srvr`, `stat`, `srst`, `mntr`, `envi` and `conf`: the role, the figures and the settings of a server.

use std::fmt::Write as _;

use super::connections::connection;
use crate::embedded::figures::Figures;
use crate::embedded::member::Member;
use crate::server::tree::Owner;

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
        latency.least,
        latency.average(),
        latency.most,
        figures.received,
        figures.sent,
    );
}

/// The number of connections. The connection that asks is one of them.
pub(super) fn connections(member: &Member) -> usize {
    member.connections().len() + 1
}

/// How many requests are still to be answered.
pub(super) fn outstanding(member: &Member) -> usize {
    let connections = member.connections();
    connections.values().map(|it| it.account().unanswered).sum()
}

/// The version of a server.
pub(super) fn version(member: &Member) -> String {
    let (major, minor, patch) = member.options.simulation.version;
    format!("{major}.{minor}.{patch}-embedded, in memory only")
}

pub(super) fn envi(member: &Member) -> String {
    let entries = [
        ("zookeeper.version", version(member)),
        ("host.name", "localhost".to_owned()),
        ("os.name", std::env::consts::OS.to_owned()),
        ("os.arch", std::env::consts::ARCH.to_owned()),
    ];
    let lines = entries
        .iter()
        .map(|(key, value)| format!("{key}={value}\n"));
    "Environment:\n".to_owned() + &lines.collect::<String>()
}

pub(super) fn conf(member: &Member) -> String {
    let options = &member.options.simulation;
    let least = options.min_session_timeout.unwrap_or(options.tick * 2);
    let most = options.max_session_timeout.unwrap_or(options.tick * 20);
    let entries = [
        ("clientPort", member.address.port().to_string()),
        ("secureClientPort", "-1".to_owned()),
        ("dataDir", String::new()),
        ("dataDirSize", "0".to_owned()),
        ("dataLogDir", String::new()),
        ("dataLogSize", "0".to_owned()),
        ("tickTime", options.tick.as_millis().to_string()),
        ("maxClientCnxns", "0".to_owned()),
        ("minSessionTimeout", least.as_millis().to_string()),
        ("maxSessionTimeout", most.as_millis().to_string()),
        ("clientPortListenBacklog", "-1".to_owned()),
        ("serverId", (member.server + 1).to_string()),
    ];
    entries
        .iter()
        .map(|(key, value)| format!("{key}={value}\n"))
        .collect()
}

pub(super) fn mntr(member: &Member) -> String {
    let mut lines = vec![
        ("version", version(member)),
        ("server_state", mode(member).to_owned()),
        ("num_alive_connections", connections(member).to_string()),
        ("outstanding_requests", outstanding(member).to_string()),
        ("uptime", member.started.elapsed().as_millis().to_string()),
    ];
    lines.extend(ensemble(member));
    lines.extend(tree(member));
    lines.extend(figures(member));
    lines
        .iter()
        .map(|(name, value)| format!("zk_{name}\t{value}\n"))
        .collect()
}

fn tree(member: &Member) -> Vec<(&'static str, String)> {
    member.shared.with(|world| {
        let servers = &world.servers;
        let found = &servers.members[member.server];
        let ephemerals = found
            .tree
            .iter()
            .filter(|(_, node)| matches!(node.owner, Owner::Session(_)));
        let size: usize = found
            .tree
            .iter()
            .map(|(path, node)| path.len() + node.data_length())
            .sum();
        vec![
            // The server counts its root twice.
            ("znode_count", (found.tree.iter().count() + 1).to_string()),
            ("watch_count", found.watches.iter().count().to_string()),
            ("ephemerals_count", ephemerals.count().to_string()),
            ("approximate_data_size", size.to_string()),
            ("global_sessions", servers.sessions.len().to_string()),
        ]
    })
}

/// The member among the others; nothing if it is alone.
fn ensemble(member: &Member) -> Vec<(&'static str, String)> {
    let (size, leads, followers) = member.shared.with(|world| {
        let servers = &world.servers;
        let followers = servers.followers().count();
        let leads = servers.leads(member.server);
        (servers.members.len(), leads, followers)
    });
    if size == 1 {
        return Vec::new();
    }
    let role = if leads { "leading" } else { "following" };
    let mut lines = vec![
        ("peer_state", format!("{role} - broadcast")),
        ("quorum_size", size.to_string()),
    ];
    if leads {
        lines.extend([
            ("learners", followers.to_string()),
            ("followers", followers.to_string()),
            ("synced_followers", followers.to_string()),
        ]);
    }
    lines
}

fn figures(member: &Member) -> Vec<(&'static str, String)> {
    let figures = member.figures().clone();
    let latency = figures.latency;
    vec![
        ("avg_latency", format!("{:.4}", latency.average())),
        ("min_latency", latency.least.to_string()),
        ("max_latency", latency.most.to_string()),
        ("packets_received", figures.received.to_string()),
        ("packets_sent", figures.sent.to_string()),
        ("sum_node_created_watch_count", figures.created.to_string()),
        ("sum_node_deleted_watch_count", figures.deleted.to_string()),
        ("sum_node_changed_watch_count", figures.changed.to_string()),
        (
            "sum_node_children_watch_count",
            figures.children.to_string(),
        ),
    ]
}
