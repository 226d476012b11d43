//! `mntr`: a server's figures, one a line.

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
        let followers = servers.members.len() - 1;
        let mut lines = vec![
            // The server counts its root twice.
            ("znode_count", (found.tree.iter().count() + 1).to_string()),
            ("watch_count", found.watches.iter().count().to_string()),
            ("ephemerals_count", ephemerals.count().to_string()),
            ("approximate_data_size", size.to_string()),
            ("global_sessions", servers.sessions.len().to_string()),
            ("local_sessions", "0".to_owned()),
        ];
        if followers > 0 && servers.leader == member.server {
            lines.push(("followers", followers.to_string()));
            lines.push(("synced_followers", followers.to_string()));
        }
        lines
    })
}

fn figures(member: &Member) -> Vec<(&'static str, String)> {
    let figures = member.figures().clone();
    let latency = figures.latency;
    let watchers = |count: u64| count.to_string();
    vec![
        ("avg_latency", format!("{:.4}", latency.average())),
        ("min_latency", latency.least().to_string()),
        ("max_latency", latency.most.to_string()),
        ("packets_received", figures.received.to_string()),
        ("packets_sent", figures.sent.to_string()),
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
