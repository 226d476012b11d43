//! What an administrator does to the servers, without a session and at once.

use zookeeper_recipes_core::Refusal;
use zookeeper_recipes_core::ensemble::{Acl, Operation};

use super::access::Writer;
use super::state::Servers;
use super::transaction::Body;
use super::tree::Edit;
use crate::wire::answer::Failure;

impl Servers {
    /// Writes as the administrator, who may do everything.
    pub(crate) fn administer(&mut self, operation: Operation) -> Result<(), Refusal> {
        self.write_as(operation, &Writer::Administrator).map(drop)
    }

    /// Writes as somebody who has no rights but everyone's.
    pub(crate) fn write_as_anyone(&mut self, operation: Operation) -> Result<(), Refusal> {
        self.write_as(operation, &Writer::Session(0, &[])).map(drop)
    }

    /// Writes, and tells the path of the znode.
    fn write_as(&mut self, operation: Operation, writer: &Writer<'_>) -> Result<String, Refusal> {
        let body = self.decide(&[operation.into()], false, writer);
        let written = match &body {
            Body::Refused(Failure::Refused { refusal, .. }) => Err(refusal.clone()),
            Body::Write { edits, .. } => {
                let path = edits.iter().find_map(Edit::path);
                Ok(path.unwrap_or_default().to_owned())
            }
            _ => Ok(String::new()),
        };
        self.propose(0, None, body);
        self.commit_all();
        written
    }

    /// Creates a znode, and tells its path.
    pub(crate) fn create_as_administrator(&mut self, create: Operation) -> Result<String, Refusal> {
        self.write_as(create, &Writer::Administrator)
    }

    /// Replaces an access control list, and tells the earlier one.
    pub(crate) fn set_acl(&mut self, path: &str, acl: &[Acl]) -> Result<Vec<Acl>, Refusal> {
        let earlier = self.tree.get(path).ok_or(Refusal::NoNode)?.acl.clone();
        self.edit(Edit::SetAcl {
            path: path.to_owned(),
            acl: acl.into(),
        });
        Ok(earlier.to_vec())
    }

    /// Sets the counter behind the sequence numbers of a znode's children. Each server applies it
    /// in the order of the log: a follower that lags counts on from it too.
    pub(crate) fn set_create_counter(&mut self, path: &str, creates: i32) -> Result<(), Refusal> {
        self.tree.get(path).ok_or(Refusal::NoNode)?;
        self.outstanding.remove(path);
        self.edit(Edit::SetCreates {
            path: path.to_owned(),
            creates,
        });
        Ok(())
    }

    fn edit(&mut self, edit: Edit) {
        let body = Body::Write {
            edits: vec![edit],
            several: false,
        };
        self.propose(0, None, body);
        self.commit_all();
    }

    /// Commits all that has been proposed.
    pub(crate) fn commit_all(&mut self) {
        if self.log_end() > 0 {
            let last = self.log_end() - 1;
            self.commit(last);
        }
    }
}
