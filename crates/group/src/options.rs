//! What can be chosen about a group.

use zookeeper_recipes_core::{Acl, AuthId, Directories, Permission};

/// Options of a [`Group`](crate::Group).
///
/// ```
/// use zookeeper_recipes_group::{Directories, GroupOptions};
///
/// let options = GroupOptions::new().directories(Directories::Persistent);
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct GroupOptions {
    pub(crate) acl: Vec<Acl>,
    pub(crate) directories: Directories,
}

impl GroupOptions {
    /// The defaults: an access control list that is open to everyone, container directories.
    pub fn new() -> GroupOptions {
        GroupOptions {
            acl: vec![Acl::new(Permission::ALL, AuthId::anyone())],
            directories: Directories::Container,
        }
    }

    /// The access control list of the created znodes, directories included.
    pub fn acl(mut self, acl: impl Into<Vec<Acl>>) -> GroupOptions {
        self.acl = acl.into();
        self
    }

    /// The kind of znode that missing directories are created as.
    pub fn directories(mut self, kind: Directories) -> GroupOptions {
        self.directories = kind;
        self
    }
}

impl Default for GroupOptions {
    fn default() -> GroupOptions {
        GroupOptions::new()
    }
}
