//! The judgement of writes: the leader turns each into an edit, or refuses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, CreateMode, Operation, Permission};

use super::access::{Writer, expand, permit};
use super::paths;
use super::tree::{Edit, EditKind, Owner, Tree, split};
use crate::wire::answer::Failure;
use crate::wire::write::Write;

/// The create counters that the leader has promised in proposals not yet committed.
///
/// They matter at the very end of the counter only: there a proposal wraps while the tree stays.
/// Creates proposed one by one all get 2147483647; of several under way at once the later ones
/// get -2147483648, -2147483647 and so on, until none is under way and it is 2147483647 again.
/// Seen on 3.8.0.
pub(crate) type Outstanding = BTreeMap<String, (i32, i64)>;

/// The state of a znode that the leader judges the next write by.
#[derive(Clone)]
struct Record {
    version: i32,
    owner: Owner,
    children: usize,
    creates: i32,
    acl: Arc<[Acl]>,
    acl_version: i32,
}

/// The operations of one transaction, checked in order, each on top of those before it.
pub(crate) struct Proposal<'a> {
    tree: &'a Tree,
    outstanding: &'a Outstanding,
    records: BTreeMap<String, Option<Record>>,
}

impl<'a> Proposal<'a> {
    pub(crate) fn new(tree: &'a Tree, outstanding: &'a Outstanding) -> Proposal<'a> {
        Proposal {
            tree,
            outstanding,
            records: BTreeMap::new(),
        }
    }

    /// The counters that this proposal promises, to be remembered until it has been committed.
    pub(crate) fn promised(self) -> Vec<(String, i32)> {
        self.records
            .into_iter()
            .filter_map(|(path, record)| Some((path, record?.creates)))
            .collect()
    }

    pub(crate) fn add(&mut self, write: &Write, writer: &Writer<'_>) -> Result<Edit, Failure> {
        match write {
            Write::Operation(operation) => Ok(self.operate(operation, writer)?),
            Write::WithoutData(operation) => {
                let mut edit = self.operate(operation, writer)?;
                if let EditKind::Create { data, .. } | EditKind::SetData { data, .. } =
                    &mut edit.kind
                {
                    *data = None;
                }
                Ok(edit)
            }
            Write::SetAcl { path, acl, version } => Ok(self.set_acl(path, acl, *version, writer)?),
            Write::Refused { refusal, .. } => Err(refusal.clone().into()),
            Write::Malformed => Err(Failure::Malformed),
        }
    }

    fn operate(&mut self, operation: &Operation, writer: &Writer<'_>) -> Result<Edit, Refusal> {
        match operation {
            Operation::Check { path, version } => {
                paths::check(path)?;
                let record = self.record(path)?;
                permit(&record.acl, Permission::READ, writer)?;
                next_version(record.version, *version)?;
                Ok(EditKind::Check.of(path))
            }
            Operation::Create {
                path,
                data,
                mode,
                acl,
            } => self.create(path, data, *mode, acl, writer),
            Operation::SetData {
                path,
                data,
                version,
            } => {
                paths::check(path)?;
                let mut record = self.record(path)?;
                permit(&record.acl, Permission::WRITE, writer)?;
                record.version = next_version(record.version, *version)?;
                let version = record.version;
                self.records.insert(path.clone(), Some(record));
                let data = Some(data.clone());
                Ok(EditKind::SetData { data, version }.of(path))
            }
            Operation::Delete { path, version } => self.delete(path, *version, writer),
        }
    }

    fn set_acl(
        &mut self,
        path: &str,
        acl: &[Acl],
        version: Option<i32>,
        writer: &Writer<'_>,
    ) -> Result<Edit, Refusal> {
        paths::check(path)?;
        let acl: Arc<[Acl]> = expand(acl, writer)?.into();
        let record = self.record(path)?;
        permit(&record.acl, Permission::ADMIN, writer)?;
        next_version(record.acl_version, version)?;
        Ok(EditKind::SetAcl(acl).of(path))
    }

    fn create(
        &mut self,
        path: &str,
        data: &[u8],
        mode: CreateMode,
        acl: &[Acl],
        writer: &Writer<'_>,
    ) -> Result<Edit, Refusal> {
        paths::check_parent(path)?;
        let (parent_path, _) = split(path);
        let acl: Arc<[Acl]> = expand(acl, writer)?.into();
        let mut parent = self.record(parent_path)?;
        permit(&parent.acl, Permission::CREATE, writer)?;
        let sequential = matches!(
            mode,
            CreateMode::PersistentSequential | CreateMode::EphemeralSequential
        );
        let path = if sequential {
            // Java's `%010d`: a minus sign takes one of the ten places.
            format!("{path}{:010}", parent.creates)
        } else {
            path.to_owned()
        };
        paths::check(&path)?;
        if self.record(&path).is_ok() {
            return Err(Refusal::NodeExists);
        }
        if matches!(parent.owner, Owner::Session(_)) {
            return Err(Refusal::NoChildrenForEphemerals);
        }
        let owner = match (mode, writer) {
            (CreateMode::Container, _) => Owner::Container,
            (
                CreateMode::Ephemeral | CreateMode::EphemeralSequential,
                Writer::Session(session, _),
            ) => Owner::Session(*session),
            _ => Owner::Nobody,
        };
        parent.creates = parent.creates.wrapping_add(1);
        parent.children += 1;
        let parent_creates = parent.creates;
        self.records.insert(parent_path.to_owned(), Some(parent));
        let record = Record {
            version: 0,
            owner,
            children: 0,
            creates: 0,
            acl: acl.clone(),
            acl_version: 0,
        };
        self.records.insert(path.clone(), Some(record));
        let kind = EditKind::Create {
            data: Some(data.to_vec()),
            acl,
            owner,
            parent_creates,
        };
        Ok(Edit { path, kind })
    }

    fn delete(
        &mut self,
        path: &str,
        version: Option<i32>,
        writer: &Writer<'_>,
    ) -> Result<Edit, Refusal> {
        paths::check_parent(path)?;
        if matches!(
            path,
            "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config"
        ) {
            return Err(Refusal::BadArguments("server error".to_owned()));
        }
        let (parent_path, _) = split(path);
        let mut parent = self.record(parent_path)?;
        permit(&parent.acl, Permission::DELETE, writer)?;
        let record = self.record(path)?;
        next_version(record.version, version)?;
        if record.children > 0 {
            return Err(Refusal::NotEmpty);
        }
        if matches!((writer, record.owner), (Writer::Reaper, Owner::Session(_))) {
            return Err(Refusal::BadVersion);
        }
        parent.children -= 1;
        self.records.insert(parent_path.to_owned(), Some(parent));
        self.records.insert(path.to_owned(), None);
        Ok(EditKind::Delete.of(path))
    }

    fn record(&self, path: &str) -> Result<Record, Refusal> {
        if let Some(record) = self.records.get(path) {
            return record.clone().ok_or(Refusal::NoNode);
        }
        let node = self.tree.get(path).ok_or(Refusal::NoNode)?;
        Ok(Record {
            version: node.version,
            owner: node.owner,
            children: node.children.len(),
            creates: self
                .outstanding
                .get(path)
                .map_or(node.creates, |(creates, _)| *creates),
            acl: node.acl.clone(),
            acl_version: node.acl_version,
        })
    }
}

fn next_version(current: i32, expected: Option<i32>) -> Result<i32, Refusal> {
    match expected {
        Some(expected) if expected != -1 && expected != current => Err(Refusal::BadVersion),
        _ => Ok(current.wrapping_add(1)),
    }
}
