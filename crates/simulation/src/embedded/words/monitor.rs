//! `mntr`: a server's figures, one a line.
//!
//! It has all gauges of Apache's server but those of its process, and of its counters those of
//! watches. The other counters and summaries tell of parts that this server does not have.

use std::fmt::Write as _;

use super::environment::version;
use super::status::{connections, mode, outstanding};
use crate::embedded::member::Member;
use crate::server::tree::Owner;

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
    let mut text = String::new();
    for (name, value) in lines {
        // Writing to a String does not fail.
        let _ = writeln!(text, "zk_{name}\t{value}");
    }
    text
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
            .map(|(path, node)| path.len() + node.data.len())
            .sum();
        vec![
            // The server counts its root twice.
            ("znode_count", (found.tree.iter().count() + 1).to_string()),
            ("watch_count", found.watches.iter().count().to_string()),
            ("ephemerals_count", ephemerals.count().to_string()),
            ("approximate_data_size", size.to_string()),
            ("global_sessions", servers.sessions.len().to_string()),
            ("local_sessions", "0".to_owned()),
        ]
    })
}

/// The member among the others; nothing if it is alone.
fn ensemble(member: &Member) -> Vec<(&'static str, String)> {
    let (size, leads, followers, pending) = member.shared.with(|world| {
        let servers = &world.servers;
        let followers = servers.followers().count();
        let leads = servers.leads(member.server);
        (servers.members.len(), leads, followers, servers.syncs.len())
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
            ("synced_non_voting_followers", "0".to_owned()),
            ("synced_observers", "0".to_owned()),
            ("pending_syncs", pending.to_string()),
            ("last_proposal_size", "-1".to_owned()),
            ("min_proposal_size", "-1".to_owned()),
            ("max_proposal_size", "-1".to_owned()),
        ]);
    }
    lines
}

fn figures(member: &Member) -> Vec<(&'static str, String)> {
    let figures = member.figures().clone();
    let latency = figures.latency;
    let watchers = |count: u64| count.to_string();
    let size = |bytes: Option<usize>| bytes.map_or_else(|| "-1".to_owned(), |it| it.to_string());
    vec![
        ("avg_latency", format!("{:.4}", latency.average())),
        ("min_latency", latency.least().to_string()),
        ("max_latency", latency.most.to_string()),
        ("packets_received", figures.received.to_string()),
        ("packets_sent", figures.sent.to_string()),
        ("last_client_response_size", size(figures.responses.last)),
        ("min_client_response_size", size(figures.responses.least)),
        ("max_client_response_size", size(figures.responses.most)),
        ("connection_drop_probability", "0.0".to_owned()),
        ("outstanding_tls_handshake", "0".to_owned()),
        ("non_mtls_remote_conn_count", "0".to_owned()),
        ("non_mtls_local_conn_count", connections(member).to_string()),
        (
            "auth_failed_count",
            figures.authentication_failures.to_string(),
        ),
        ("sum_node_created_watch_count", watchers(figures.created)),
        ("sum_node_deleted_watch_count", watchers(figures.deleted)),
        ("sum_node_changed_watch_count", watchers(figures.changed)),
        ("sum_node_children_watch_count", watchers(figures.children)),
    ]
}
