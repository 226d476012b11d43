//! Access control: who may do what, and which lists a server stores.

use std::net::Ipv4Addr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1_smol::Sha1;
use zookeeper_recipes_protocol::{Acl, AuthId, ErrorCode, Permission};

/// The author of a request, for access control.
pub(crate) enum Writer<'a> {
    /// A session, with what it has authenticated as.
    Session(i64, &'a [AuthId]),
    /// The server itself or its administrator: no access control.
    Administrator,
    /// The server, about to reap a container: the znode must still be empty and no ephemeral.
    Reaper,
}

/// The scheme of the identity that no access control list limits. No client can claim it.
pub(super) const SUPER: &str = "super";

/// Refuses an operation that the access control list does not permit.
pub(crate) fn permit(
    acl: &[Acl],
    permission: Permission,
    writer: &Writer<'_>,
) -> Result<(), ErrorCode> {
    let Writer::Session(_, identities) = writer else {
        return Ok(());
    };
    if identities.iter().any(|it| &*it.scheme == SUPER) {
        return Ok(());
    }
    let allowed = acl.iter().any(|entry| {
        let is_anyone = (&*entry.id.scheme, &*entry.id.id) == ("world", "anyone");
        entry.permissions & permission != Permission::NONE
            && (is_anyone || identities.iter().any(|it| matches(it, &entry.id)))
    });
    let is_permitted = acl.is_empty() || allowed;
    is_permitted.then_some(()).ok_or(ErrorCode::NoAuth)
}

/// The list that gives these permissions to anyone.
pub(crate) fn anyone(permissions: Permission) -> Vec<Acl> {
    let id = AuthId::anyone();
    vec![Acl { permissions, id }]
}

/// The identity that these credentials prove; `None` if the server does not know the scheme.
pub(super) fn identity(scheme: &str, credentials: &[u8]) -> Option<AuthId> {
    match scheme {
        "digest" => {
            let text = String::from_utf8_lossy(credentials);
            let user = text.split(':').next().unwrap_or_default();
            let hash = STANDARD.encode(Sha1::from(text.as_bytes()).digest().bytes());
            Some(AuthId::new("digest", &format!("{user}:{hash}")))
        }
        // The address is known anyway, and proves nothing.
        "ip" => Some(AuthId::new("ip", "")),
        _ => None,
    }
}

/// True if this identity is that of an entry, or in the entry's range of addresses.
fn matches(identity: &AuthId, entry: &AuthId) -> bool {
    match (&*identity.scheme, &*entry.scheme) {
        ("ip", "ip") => {
            AddressRange::parse(&entry.id).is_some_and(|range| range.contains(&identity.id))
        }
        _ => identity == entry,
    }
}

/// The list as the server stores it: each entry once, `auth` replaced by who the writer is.
pub(super) fn expand(acl: &[Acl], writer: &Writer<'_>) -> Result<Vec<Acl>, ErrorCode> {
    let mut expanded = Vec::new();
    let mut seen = Vec::new();
    for entry in acl {
        if seen.contains(&entry) {
            continue;
        }
        seen.push(entry);
        match (&*entry.id.scheme, &*entry.id.id) {
            ("world", "anyone") => expanded.push(entry.clone()),
            ("auth", _) => {
                let Writer::Session(_, identities) = writer else {
                    return Err(ErrorCode::InvalidAcl);
                };
                let known = expanded.len();
                // An address is an identity, but no proof of one. No list names the super user.
                let proven = identities
                    .iter()
                    .filter(|identity| !matches!(&*identity.scheme, "ip" | SUPER));
                expanded.extend(proven.map(|identity| Acl {
                    permissions: entry.permissions,
                    id: identity.clone(),
                }));
                if expanded.len() == known {
                    return Err(ErrorCode::InvalidAcl);
                }
            }
            ("digest", id) if java_parts(id) == 2 => expanded.push(entry.clone()),
            ("ip", id) if AddressRange::parse(id).is_some() => expanded.push(entry.clone()),
            _ => return Err(ErrorCode::InvalidAcl),
        }
    }
    if expanded.is_empty() {
        Err(ErrorCode::InvalidAcl)
    } else {
        Ok(expanded)
    }
}

/// The number of parts of Java's `split(":")`, which drops empty parts at the end.
fn java_parts(id: &str) -> usize {
    match id.trim_end_matches(':') {
        "" if id.is_empty() => 1,
        "" => 0,
        rest => rest.split(':').count(),
    }
}

/// A range of addresses, such as `10.0.0.0/8`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AddressRange {
    address: u32,
    mask: u32,
}

impl AddressRange {
    /// Reads a range, or one address. The server knows no others than those of IPv4.
    pub(super) fn parse(text: &str) -> Option<AddressRange> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, bits.parse().ok().filter(|bits| *bits <= 32)?),
            None => (text, 32),
        };
        Some(AddressRange {
            address: parse_address(address)?,
            mask: u32::MAX.checked_shl(32 - bits).unwrap_or(0),
        })
    }

    pub(super) fn contains(self, address: &str) -> bool {
        parse_address(address).is_some_and(|it| it & self.mask == self.address & self.mask)
    }
}

fn parse_address(text: &str) -> Option<u32> {
    Some(u32::from(text.parse::<Ipv4Addr>().ok()?))
}

#[cfg(test)]
#[path = "../../tests/unit/access.rs"]
mod tests;
