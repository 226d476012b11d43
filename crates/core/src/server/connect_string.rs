//! Connect strings: the hosts of an ensemble, and the chroot.

use zookeeper_recipes_connection::Host;

use crate::invalid_input::InvalidInput;
use crate::path::NodePath;

/// A connect string that is well formed.
#[derive(Clone, Debug)]
pub(crate) struct ConnectString {
    /// The connect string without spaces around its hosts.
    pub(crate) text: String,
    pub(crate) hosts: Vec<Host>,
    /// Whether each host is to be encrypted whose scheme says so.
    are_encrypted: Vec<bool>,
    /// The chroot. `/` if the connect string has none.
    pub(crate) chroot: String,
}

impl ConnectString {
    /// Parses `host:port,host:port/chroot`. Spaces around a host are ignored.
    ///
    /// What may be credentials is refused, and the error does not quote it.
    pub(crate) fn new(given: &str) -> Result<ConnectString, InvalidInput> {
        if may_have_credentials(given) {
            let problem = "may have credentials in it: give them to ConnectOptions::auth, or to zkr \
                           by --credentials-file. If the @ is the chroot's, put each host into \
                           brackets: [zk1]:2181";
            return Err(InvalidInput::new("connect string", "...@...", problem));
        }
        let parts: Vec<&str> = given.split(',').map(str::trim).collect();
        let refuse = |problem: String| InvalidInput::new("connect string", given, problem);
        let text = parts.join(",");
        let (mut hosts, mut are_encrypted) = (Vec::new(), Vec::new());
        let mut chroot = "/";
        for (place, part) in parts.iter().enumerate() {
            let (is_encrypted, mut host) = without_scheme(part).map_err(refuse)?;
            are_encrypted.extend(is_encrypted);
            if let Some(slash) = host.find('/') {
                if place + 1 < parts.len() {
                    return Err(refuse("has a chroot before its last host".to_owned()));
                }
                (host, chroot) = host.split_at(slash);
            }
            hosts.push(Host::parse(host).map_err(refuse)?);
        }
        if chroot != "/" {
            NodePath::new(chroot).map_err(|error| refuse(format!("has a bad chroot: {error}")))?;
        }
        let chroot = chroot.to_owned();
        Ok(ConnectString {
            text,
            hosts,
            are_encrypted,
            chroot,
        })
    }

    /// Refuses a host whose scheme contradicts the options.
    pub(crate) fn check_schemes(&self, is_encrypted: bool) -> Result<(), InvalidInput> {
        if self.are_encrypted.iter().all(|it| *it == is_encrypted) {
            return Ok(());
        }
        let problem = if is_encrypted {
            "has tcp:// in it, which is not encrypted, but the options set TLS"
        } else if cfg!(feature = "tls") {
            "has tcp+tls:// in it, which needs the options of TLS: ConnectOptions::tls"
        } else {
            "has tcp+tls:// in it, which needs the options of TLS: ConnectOptions::tls of the cargo \
             feature tls"
        };
        Err(InvalidInput::new("connect string", &self.text, problem))
    }
}

/// The host without its scheme, and whether the scheme asks for TLS.
fn without_scheme(part: &str) -> Result<(Option<bool>, &str), String> {
    match part.split_once("://") {
        None => Ok((None, part)),
        Some(("tcp", host)) => Ok((Some(false), host)),
        Some(("tcp+tls", host)) => Ok((Some(true), host)),
        Some((scheme, _)) => Err(format!(
            "has {scheme}:// in it, which is not a scheme of ZooKeeper"
        )),
    }
}

/// True if the text before an `@` can be `user:password`, which may have slashes and commas in it.
///
/// It cannot be if a slash and no colon is before the `@`, except for the colons of schemes and of
/// hosts in brackets.
fn may_have_credentials(given: &str) -> bool {
    let Some((before, _)) = given.rsplit_once('@') else {
        return false;
    };
    let before = before.replace("://", "");
    let mut hosts = before.split(',').map(str::trim);
    !before.contains('/') || hosts.any(|host| host.contains(':') && !host.starts_with('['))
}

#[cfg(test)]
#[path = "../../tests/unit/connect_string.rs"]
mod tests;
