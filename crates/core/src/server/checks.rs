//! The default of an argument.

use crate::server::ensemble::{Acl, AuthId, Permission};

/// An access control list that permits everything to everyone, which is ZooKeeper's default.
pub(crate) fn open_acl() -> Vec<Acl> {
    vec![Acl::new(Permission::ALL, AuthId::anyone())]
}
