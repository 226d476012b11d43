//! One write, as a server gets it.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, CreateMode, Operation};

use crate::record::request_kind::RequestKind;

/// One write of a request.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Operation(Operation),
    /// A create or a set whose data is absent, which is not the same as empty.
    WithoutData(Operation),
    SetAcl {
        path: String,
        acl: Vec<Acl>,
        /// The version that the old list must have.
        version: Option<i32>,
    },
    /// A write whose content the server cannot read.
    Malformed,
    /// A write that every server refuses, such as one of an unknown mode.
    Refused {
        path: String,
        refusal: Refusal,
    },
}

impl Write {
    pub(crate) fn kind(&self) -> RequestKind {
        match self {
            Write::Operation(Operation::Create { .. })
            | Write::WithoutData(Operation::Create { .. }) => RequestKind::Create,
            Write::Operation(Operation::Delete { .. }) => RequestKind::Delete,
            _ => RequestKind::Write,
        }
    }

    /// The kind of the znode that it creates, if it creates one.
    pub(crate) fn creates(&self) -> Option<CreateMode> {
        match self {
            Write::Operation(Operation::Create { mode, .. })
            | Write::WithoutData(Operation::Create { mode, .. }) => Some(*mode),
            _ => None,
        }
    }

    pub(crate) fn path(&self) -> &str {
        match self {
            Write::Operation(operation) | Write::WithoutData(operation) => path_of(operation),
            Write::SetAcl { path, .. } | Write::Refused { path, .. } => path,
            Write::Malformed => "",
        }
    }

    /// About how many bytes it has on the wire.
    pub(crate) fn size(&self) -> usize {
        match self {
            Write::Operation(operation) | Write::WithoutData(operation) => size_of(operation),
            _ => self.path().len() + 16,
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Write::Operation(operation) | Write::WithoutData(operation) => text_of(operation),
            Write::SetAcl { path, .. } => format!("set the ACL of {path}"),
            Write::Malformed => "a write that cannot be read".to_owned(),
            Write::Refused { path, refusal } => {
                format!("write {path}, which is refused: {refusal}")
            }
        }
    }
}

fn path_of(operation: &Operation) -> &str {
    match operation {
        Operation::Check { path, .. }
        | Operation::Create { path, .. }
        | Operation::SetData { path, .. }
        | Operation::Delete { path, .. } => path,
    }
}

/// About how many bytes it has on the wire.
pub(crate) fn size_of(operation: &Operation) -> usize {
    let content = match operation {
        Operation::Create { data, acl, .. } => data.len() + acl_size(acl),
        Operation::SetData { data, .. } => data.len(),
        Operation::Check { .. } | Operation::Delete { .. } => 0,
    };
    path_of(operation).len() + content + 16
}

/// About how many bytes an access control list has on the wire.
pub(crate) fn acl_size(acl: &[Acl]) -> usize {
    let entries = acl.iter();
    entries
        .map(|it| it.scheme().len() + it.id().len() + 12)
        .sum()
}

fn text_of(operation: &Operation) -> String {
    match operation {
        Operation::Check { path, version } => match version {
            None => format!("check {path}"),
            Some(version) => format!("check {path} at {version}"),
        },
        Operation::Create { path, mode, .. } => format!("create {path} {mode:?}"),
        Operation::SetData { path, .. } => format!("set {path}"),
        Operation::Delete { path, .. } => format!("delete {path}"),
    }
}

impl From<Operation> for Write {
    fn from(operation: Operation) -> Write {
        Write::Operation(operation)
    }
}
