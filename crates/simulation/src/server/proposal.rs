//! The judgement of writes: the leader turns each into an edit, or refuses it.

use std::collections::BTreeMap;
use std::sync::Arc;

use zookeeper_recipes_protocol::{
    Acl, CheckRequest, CreateMode, CreateRequest, CreateTtlRequest, DeleteRequest, ErrorCode,
    Operation, Outcome, Permission, ReplyBody, RequestBody, SetAclRequest, SetDataRequest,
};

use super::access::{Writer, expand, permit};
use super::paths;
use super::tree::{Edit, EditKind, LONGEST_TTL, Owner, Tree, split};
use crate::options::SimulationOptions;
use crate::wire::message::Answer;

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

/// A znode to create.
struct New<'a> {
    path: &'a str,
    data: Option<&'a [u8]>,
    acl: &'a [Acl],
    mode: CreateMode,
    /// The time to live in milliseconds, of a mode that has one.
    ttl: i64,
}

impl<'a> New<'a> {
    fn of(request: &'a CreateRequest, mode: CreateMode) -> New<'a> {
        New {
            path: &request.path,
            data: request.data.as_deref(),
            acl: &request.acl,
            mode,
            ttl: -1,
        }
    }
}

/// The operations of one transaction, checked in order, each on top of those before it.
pub(crate) struct Proposal<'a> {
    tree: &'a Tree,
    outstanding: &'a Outstanding,
    options: &'a SimulationOptions,
    records: BTreeMap<String, Option<Record>>,
}

impl<'a> Proposal<'a> {
    pub(crate) fn new(
        tree: &'a Tree,
        outstanding: &'a Outstanding,
        options: &'a SimulationOptions,
    ) -> Proposal<'a> {
        Proposal {
            tree,
            outstanding,
            options,
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

    /// The edits of a write, or the answer that refuses it.
    pub(crate) fn edits(
        &mut self,
        request: &RequestBody,
        writer: &Writer<'_>,
    ) -> Result<Vec<Edit>, Answer> {
        let RequestBody::Multi(operations) = request else {
            let edit = self.edit(request, writer).map_err(Err)?;
            return Ok(vec![edit]);
        };
        if self.options.reads_create_modes_first() && operations.iter().any(has_unreadable_mode) {
            return Err(Err(ErrorCode::MarshallingError));
        }
        let mut edits = Vec::new();
        for operation in operations {
            match self.operate(operation, writer) {
                Ok(edit) => edits.push(edit),
                Err(ErrorCode::MarshallingError) => return Err(Err(ErrorCode::MarshallingError)),
                Err(error) => {
                    let results = Outcome::failed(operations.len(), edits.len(), error);
                    return Err(Ok(ReplyBody::Multi(results)));
                }
            }
        }
        Ok(edits)
    }

    /// The edit of a request with one write.
    fn edit(&mut self, request: &RequestBody, writer: &Writer<'_>) -> Result<Edit, ErrorCode> {
        match request {
            // Only a request of its own creates a container.
            RequestBody::Create(it) | RequestBody::Create2(it) if it.mode.is_container() => {
                self.create(&New::of(it, CreateMode::Persistent), writer)
            }
            RequestBody::Create(it) | RequestBody::Create2(it) => {
                self.create(&New::of(it, it.mode), writer)
            }
            RequestBody::CreateContainer(it) => {
                self.create(&New::of(it, CreateMode::Container), writer)
            }
            RequestBody::CreateTtl(it) => self.create_ttl(it, writer),
            RequestBody::Delete(it) => self.delete(it, writer),
            RequestBody::SetData(it) => self.set_data(it, writer),
            RequestBody::SetAcl(it) => self.set_acl(it, writer),
            RequestBody::Check(it) => self.check(it, writer),
            RequestBody::Reconfig(_) => Err(ErrorCode::ReconfigDisabled),
            _ => Err(ErrorCode::MarshallingError),
        }
    }

    /// The edit of one operation of a transaction. A content that cannot be read fails it all.
    fn operate(&mut self, operation: &Operation, writer: &Writer<'_>) -> Result<Edit, ErrorCode> {
        match operation {
            // Apache's server fails at the whole transaction once it comes to this.
            Operation::Create(it) | Operation::Create2(it) | Operation::CreateContainer(it)
                if it.mode.is_ttl() =>
            {
                Err(ErrorCode::MarshallingError)
            }
            // In a transaction the mode alone decides whether it is a container.
            Operation::Create(it) | Operation::Create2(it) | Operation::CreateContainer(it) => {
                self.create(&New::of(it, it.mode), writer)
            }
            Operation::CreateTtl(it) => self.create_ttl(it, writer),
            Operation::Delete(it) => self.delete(it, writer),
            Operation::SetData(it) => self.set_data(it, writer),
            Operation::Check(it) => self.check(it, writer),
            Operation::GetData(_) | Operation::GetChildren(_) => Err(ErrorCode::MarshallingError),
        }
    }

    fn check(&self, request: &CheckRequest, writer: &Writer<'_>) -> Result<Edit, ErrorCode> {
        let record = self.permitted(&request.path, Permission::READ, writer)?;
        next_version(record.version, request.version)?;
        Ok(EditKind::Check.of(&request.path))
    }

    fn set_data(
        &mut self,
        request: &SetDataRequest,
        writer: &Writer<'_>,
    ) -> Result<Edit, ErrorCode> {
        let path = &request.path;
        let mut record = self.permitted(path, Permission::WRITE, writer)?;
        let version = next_version(record.version, request.version)?;
        record.version = version;
        self.records.insert(path.clone(), Some(record));
        let data = request.data.clone();
        Ok(EditKind::SetData { data, version }.of(path))
    }

    fn set_acl(&self, request: &SetAclRequest, writer: &Writer<'_>) -> Result<Edit, ErrorCode> {
        let path = &request.path;
        paths::check(path)?;
        let acl: Arc<[Acl]> = expand(&request.acl, writer)?.into();
        let record = self.permitted(path, Permission::ADMIN, writer)?;
        next_version(record.acl_version, request.version)?;
        Ok(EditKind::SetAcl(acl).of(path))
    }

    /// A request to create a znode with a time to live.
    fn create_ttl(
        &mut self,
        request: &CreateTtlRequest,
        writer: &Writer<'_>,
    ) -> Result<Edit, ErrorCode> {
        let new = New {
            path: &request.path,
            data: request.data.as_deref(),
            acl: &request.acl,
            mode: request.mode,
            ttl: request.ttl,
        };
        match request.mode.is_ttl() {
            true => self.create(&new, writer),
            // A znode of another kind has no time to live.
            false => Err(ErrorCode::BadArguments),
        }
    }

    fn create(&mut self, new: &New<'_>, writer: &Writer<'_>) -> Result<Edit, ErrorCode> {
        let mode = new.mode;
        match mode {
            CreateMode::Unknown(_) => return Err(ErrorCode::BadArguments),
            _ if !mode.is_ttl() => {}
            _ if !self.options.extended_types => return Err(ErrorCode::Unimplemented),
            _ if !(1..=LONGEST_TTL).contains(&new.ttl) => return Err(ErrorCode::BadArguments),
            _ => {}
        }
        let path = new.path;
        paths::check_parent(path)?;
        let (parent_path, _) = split(path);
        let acl: Arc<[Acl]> = expand(new.acl, writer)?.into();
        let mut parent = self.record(parent_path)?;
        permit(&parent.acl, Permission::CREATE, writer)?;
        let path = if mode.is_sequential() {
            // Java's `%010d`: a minus sign takes one of the ten places.
            format!("{path}{:010}", parent.creates)
        } else {
            path.to_owned()
        };
        paths::check(&path)?;
        if self.record(&path).is_ok() {
            return Err(ErrorCode::NodeExists);
        }
        if matches!(parent.owner, Owner::Session(_)) {
            return Err(ErrorCode::NoChildrenForEphemerals);
        }
        let owner = match (mode, writer) {
            (CreateMode::Container, _) => Owner::Container,
            (mode, _) if mode.is_ttl() => Owner::Ttl(new.ttl),
            (mode, Writer::Session(session, _)) if mode.is_ephemeral() => Owner::Session(*session),
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
            data: new.data.map(<[u8]>::to_vec),
            acl,
            owner,
            parent_creates,
        };
        Ok(Edit { path, kind })
    }

    fn delete(&mut self, request: &DeleteRequest, writer: &Writer<'_>) -> Result<Edit, ErrorCode> {
        let path = &*request.path;
        paths::check_parent(path)?;
        if matches!(
            path,
            "/" | "/zookeeper" | "/zookeeper/quota" | "/zookeeper/config"
        ) {
            return Err(ErrorCode::BadArguments);
        }
        let (parent_path, _) = split(path);
        let mut parent = self.record(parent_path)?;
        permit(&parent.acl, Permission::DELETE, writer)?;
        let record = self.record(path)?;
        next_version(record.version, request.version)?;
        if record.children > 0 {
            return Err(ErrorCode::NotEmpty);
        }
        if matches!((writer, record.owner), (Writer::Reaper, Owner::Session(_))) {
            return Err(ErrorCode::BadVersion);
        }
        parent.children -= 1;
        self.records.insert(parent_path.to_owned(), Some(parent));
        self.records.insert(path.to_owned(), None);
        Ok(EditKind::Delete.of(path))
    }

    /// The record of a znode whose list gives the writer this permission.
    fn permitted(
        &self,
        path: &str,
        permission: Permission,
        writer: &Writer<'_>,
    ) -> Result<Record, ErrorCode> {
        paths::check(path)?;
        let record = self.record(path)?;
        permit(&record.acl, permission, writer)?;
        Ok(record)
    }

    fn record(&self, path: &str) -> Result<Record, ErrorCode> {
        if let Some(record) = self.records.get(path) {
            return record.clone().ok_or(ErrorCode::NoNode);
        }
        let node = self.tree.get(path).ok_or(ErrorCode::NoNode)?;
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

fn next_version(current: i32, expected: i32) -> Result<i32, ErrorCode> {
    let is_met = expected == -1 || expected == current;
    let next = current.wrapping_add(1);
    is_met.then_some(next).ok_or(ErrorCode::BadVersion)
}

/// True for a create whose mode is unknown, or needs a time to live that the request has not.
fn has_unreadable_mode(operation: &Operation) -> bool {
    match operation {
        Operation::Create(it) | Operation::Create2(it) | Operation::CreateContainer(it) => {
            matches!(it.mode, CreateMode::Unknown(_)) || it.mode.is_ttl()
        }
        _ => false,
    }
}
