//! Values of the protocol as values of the interface, and back.

use zookeeper_recipes_core::ensemble::{self, AuthId, Permission};
use zookeeper_recipes_protocol::{Acl, CreateMode, Id, Stat, permission};

const PERMISSIONS: [(i32, Permission); 5] = [
    (permission::READ, Permission::READ),
    (permission::WRITE, Permission::WRITE),
    (permission::CREATE, Permission::CREATE),
    (permission::DELETE, Permission::DELETE),
    (permission::ADMIN, Permission::ADMIN),
];

/// The kind of a znode; `None` for a kind that the server does not know or has not enabled.
pub(crate) fn mode(mode: CreateMode) -> Option<ensemble::CreateMode> {
    Some(match mode {
        CreateMode::Persistent => ensemble::CreateMode::Persistent,
        CreateMode::Ephemeral => ensemble::CreateMode::Ephemeral,
        CreateMode::PersistentSequential => ensemble::CreateMode::PersistentSequential,
        CreateMode::EphemeralSequential => ensemble::CreateMode::EphemeralSequential,
        CreateMode::Container => ensemble::CreateMode::Container,
        _ => return None,
    })
}

pub(crate) fn acl_in(acl: Vec<Acl>) -> Vec<ensemble::Acl> {
    let entry = |entry: Acl| {
        let permitted = PERMISSIONS
            .iter()
            .filter(|(bit, _)| entry.permissions & bit != 0);
        let permission = permitted.fold(Permission::NONE, |all, (_, one)| all | *one);
        ensemble::Acl::new(permission, AuthId::new(&entry.id.scheme, &entry.id.id))
    };
    acl.into_iter().map(entry).collect()
}

pub(crate) fn acl_out(acl: &[ensemble::Acl]) -> Vec<Acl> {
    let entry = |entry: &ensemble::Acl| {
        let permitted = PERMISSIONS
            .iter()
            .filter(|(_, permission)| entry.permission().has(*permission));
        Acl {
            permissions: permitted.map(|(bit, _)| bit).sum(),
            id: Id {
                scheme: entry.scheme().to_owned(),
                id: entry.id().to_owned(),
            },
        }
    };
    acl.iter().map(entry).collect()
}

pub(crate) fn stat(stat: ensemble::Stat) -> Stat {
    Stat {
        czxid: stat.czxid,
        mzxid: stat.mzxid,
        ctime: stat.ctime,
        mtime: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: stat.ephemeral_owner,
        data_length: stat.data_length,
        num_children: stat.num_children,
        pzxid: stat.pzxid,
    }
}
