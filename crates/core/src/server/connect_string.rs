//! Connect strings: the hosts of an ensemble, and the chroot.

use zookeeper_recipes_connection::Host;

use crate::invalid_input::InvalidInput;
use crate::path::NodePath;

/// The port of a host that is given without one.
const PORT: u16 = 2181;

/// The schemes that the client knows.
const SCHEMES: [&str; 2] = ["tcp", "tcp+tls"];

/// A connect string that is well formed.
#[derive(Debug)]
pub(crate) struct ConnectString {
    /// The connect string in the form that the client library reads.
    pub(crate) text: String,
    pub(crate) hosts: Vec<Host>,
    /// The chroot. `/` if the connect string has none.
    pub(crate) chroot: String,
}

impl ConnectString {
    /// Parses `host:port,host:port/chroot`. Spaces around a host are ignored.
    pub(crate) fn new(given: &str) -> Result<ConnectString, InvalidInput> {
        let refuse = |problem: String| InvalidInput::new("connect string", given, problem);
        let parts: Vec<&str> = given.split(',').map(str::trim).collect();
        let text = parts.join(",");
        let mut hosts = Vec::new();
        let mut chroot = "/";
        for (place, part) in parts.iter().enumerate() {
            let mut host = without_scheme(part).map_err(refuse)?;
            if let Some(slash) = host.find('/') {
                if place + 1 < parts.len() {
                    return Err(refuse("has a chroot before its last host".to_owned()));
                }
                (host, chroot) = host.split_at(slash);
            }
            hosts.push(host_of(host).map_err(refuse)?);
        }
        if chroot != "/" {
            NodePath::new(chroot).map_err(|error| refuse(format!("has a bad chroot: {error}")))?;
        }
        let chroot = chroot.to_owned();
        Ok(ConnectString {
            text,
            hosts,
            chroot,
        })
    }
}

fn without_scheme(part: &str) -> Result<&str, String> {
    match part.split_once("://") {
        Some((scheme, host)) if SCHEMES.contains(&scheme) => Ok(host),
        Some((scheme, _)) => Err(format!(
            "begins with {scheme}://, which is not a scheme of ZooKeeper"
        )),
        None => Ok(part),
    }
}

fn host_of(given: &str) -> Result<Host, String> {
    let bracketed = given
        .strip_prefix('[')
        .and_then(|address| address.split_once(']'));
    let (name, port) = match bracketed {
        Some((address, after)) => (address, after.strip_prefix(':').unwrap_or(after)),
        None => given.rsplit_once(':').unwrap_or((given, "")),
    };
    if name.is_empty() {
        return Err("has an empty host in it".to_owned());
    }
    let is_odd = |character: char| {
        character.is_whitespace()
            || "/;@[]".contains(character)
            || (character == ':' && bracketed.is_none())
    };
    if name.contains(is_odd) {
        let problem = "is not a host: separate hosts by commas, put IPv6 addresses into brackets";
        return Err(format!("has {name:?} in it, which {problem}"));
    }
    let port = match port {
        "" => PORT,
        port => match port.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(format!("has {port:?} in it, which is not a port")),
        },
    };
    let name = name.to_owned();
    Ok(Host { name, port })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(connect_string: &str) -> Vec<(String, u16)> {
        let read = ConnectString::new(connect_string).expect("it is well formed");
        let hosts = read.hosts.into_iter();
        hosts.map(|host| (host.name, host.port)).collect()
    }

    #[test]
    fn hosts_are_read_with_their_ports() {
        let zk = |name: &str, port| (name.to_owned(), port);
        assert_eq!(hosts("zk1"), [zk("zk1", 2181)]);
        assert_eq!(
            hosts("zk1:1, tcp+tls://zk2:2 ,[::1]:3,[::1]/app"),
            [zk("zk1", 1), zk("zk2", 2), zk("::1", 3), zk("::1", 2181)]
        );
    }

    #[test]
    fn malformed_connect_string_is_refused_with_its_problem() {
        for (given, problem) in [
            ("", "an empty host"),
            ("/app", "an empty host"),
            (",zk1", "an empty host"),
            ("zk1:2181,", "an empty host"),
            ("zk1:1;zk2:2", "separate hosts by commas"),
            ("::1:2181", "into brackets"),
            ("zk1 zk2", "separate hosts by commas"),
            ("zk1:port", "not a port"),
            ("zk1:0", "not a port"),
            ("zk1:70000", "not a port"),
            ("zk://zk1:2181", "zk://"),
            ("zk1/app,zk2", "before its last host"),
            ("zk1/app/", "bad chroot"),
        ] {
            let error = ConnectString::new(given).expect_err(given).to_string();
            assert!(error.contains(problem), "{given}: {error}");
        }
    }
}
