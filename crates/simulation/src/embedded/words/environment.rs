//! `envi` and `conf`: what a server runs on, and with which settings.

use std::fmt::Write as _;

use crate::embedded::member::Member;

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
    let mut text = "Environment:\n".to_owned();
    for (key, value) in entries {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{key}={value}");
    }
    text
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
    let mut text = String::new();
    for (key, value) in entries {
        let _ = writeln!(text, "{key}={value}");
    }
    text
}
