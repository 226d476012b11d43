//! Access control: who may do what, and which lists a server stores.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, AuthId, Permission};

use super::addresses::AddressRange;

/// Who asks for a write, or for a read.
pub(crate) enum Writer<'a> {
    /// A session, with what it has authenticated as.
    Session(i64, &'a [AuthId]),
    /// The server itself or its administrator: no access control.
    Administrator,
    /// The server, about to reap a container: the znode must still be empty and no ephemeral.
    Reaper,
}

/// Whether the access control list lets this writer do that.
pub(crate) fn permit(
    acl: &[Acl],
    permission: Permission,
    writer: &Writer<'_>,
) -> Result<(), Refusal> {
    let Writer::Session(_, identities) = writer else {
        return Ok(());
    };
    let allowed = acl.iter().any(|entry| {
        entry.permission().has(permission)
            && (*entry.auth_id() == AuthId::anyone()
                || identities.iter().any(|it| matches(it, entry.auth_id())))
    });
    if acl.is_empty() || allowed {
        Ok(())
    } else {
        Err(Refusal::NoAuth)
    }
}

/// Whether this identity is the one of an entry, or is in the range of addresses of the entry.
fn matches(identity: &AuthId, entry: &AuthId) -> bool {
    match (identity.scheme(), entry.scheme()) {
        ("ip", "ip") => {
            AddressRange::parse(entry.id()).is_some_and(|range| range.contains(identity.id()))
        }
        _ => identity == entry,
    }
}

/// The list as the server stores it: each entry once, `auth` replaced by who the writer is.
pub(super) fn expand(acl: &[Acl], writer: &Writer<'_>) -> Result<Vec<Acl>, Refusal> {
    let mut expanded = Vec::new();
    let mut seen = Vec::new();
    for entry in acl {
        if seen.contains(&entry) {
            continue;
        }
        seen.push(entry);
        match (entry.scheme(), entry.id()) {
            ("world", "anyone") => expanded.push(entry.clone()),
            ("auth", _) => {
                let Writer::Session(_, identities) = writer else {
                    return Err(Refusal::InvalidAcl);
                };
                let known = expanded.len();
                // An address is an identity, but no proof of one.
                for identity in identities
                    .iter()
                    .filter(|identity| identity.scheme() != "ip")
                {
                    expanded.push(Acl::new(entry.permission(), identity.clone()));
                }
                if expanded.len() == known {
                    return Err(Refusal::InvalidAcl);
                }
            }
            ("digest", id) if java_parts(id) == 2 => expanded.push(entry.clone()),
            ("ip", id) if AddressRange::parse(id).is_some() => expanded.push(entry.clone()),
            _ => return Err(Refusal::InvalidAcl),
        }
    }
    if expanded.is_empty() {
        Err(Refusal::InvalidAcl)
    } else {
        Ok(expanded)
    }
}

/// How many parts Java's `split(":")` makes: it drops the empty ones at the end.
fn java_parts(id: &str) -> usize {
    match id.trim_end_matches(':') {
        "" if id.is_empty() => 1,
        "" => 0,
        rest => rest.split(':').count(),
    }
}
