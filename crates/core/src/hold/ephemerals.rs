//! The bytes of a session's ephemeral znodes, as the servers count them.
//!
//! The transaction that ends a session lists the paths of all its ephemeral znodes. The members of
//! an ensemble, and a server that starts again, refuse to read a transaction that is longer than
//! `jute.maxbuffer` and an extra size, which is at least 1,024 bytes. Nobody can then serve any
//! more (ZOOKEEPER-4306). So a session refuses the znode with which the transaction would be
//! longer than `jute.maxbuffer`.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::server::ensemble::{CreateMode, Operation, Outcome, TransactionError};
use crate::server::error::{Refusal, ServerError};
use crate::sync::{Mutex, lock};

/// The bytes of a text beside its characters.
const LENGTH: usize = 4;
/// The digits that a server appends to the path of a sequential znode.
const DIGITS: usize = 10;
/// More than the bytes of the transaction beside the paths: header, number of paths, digest. They
/// are 48.
const OVERHEAD: usize = 1024;

/// Counts the bytes of the ephemeral znodes that a session has, or may have.
pub(crate) struct Ephemerals {
    /// The length of the chroot.
    chroot: usize,
    limit: usize,
    bytes: AtomicUsize,
    /// The paths of the znodes that guarded transactions have created.
    written: Mutex<BTreeSet<String>>,
}

impl Ephemerals {
    /// The count of a session below this chroot, at servers with this `jute.maxbuffer`.
    pub(crate) fn new(chroot: &str, jute_maxbuffer: usize) -> Ephemerals {
        Ephemerals {
            chroot: chroot.trim_end_matches('/').len(),
            limit: jute_maxbuffer.saturating_sub(OVERHEAD),
            bytes: AtomicUsize::new(0),
            written: Mutex::default(),
        }
    }

    /// How many bytes further znodes may have.
    pub(crate) fn left(&self) -> usize {
        self.limit
            .saturating_sub(self.bytes.load(Ordering::Relaxed))
    }

    /// The bytes of a znode that is created at this path. Zero if it is not ephemeral.
    pub(crate) fn bytes_of(&self, path: &str, mode: CreateMode) -> usize {
        let digits = match mode {
            CreateMode::Ephemeral => 0,
            CreateMode::EphemeralSequential => DIGITS,
            _ => return 0,
        };
        LENGTH + self.chroot + path.len() + digits
    }

    /// Counts these bytes.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyEphemerals`] if they would be too many.
    pub(crate) fn add(&self, bytes: usize) -> Result<(), ServerError> {
        let added = |counted: usize| Some(counted + bytes).filter(|sum| *sum <= self.limit);
        let counted = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, added);
        let refused = |counted| {
            ServerError::Refused(Refusal::TooManyEphemerals {
                bytes: counted + bytes,
                limit: self.limit,
            })
        };
        counted.map(drop).map_err(refused)
    }

    /// Counts the bytes of a znode that replaces another one in one transaction.
    pub(crate) fn add_replacement(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// The znodes of these bytes do not exist.
    pub(crate) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts the ephemeral znodes that a guarded transaction is about to create.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    pub(crate) fn begin(&self, operations: &[Operation]) -> Result<usize, ServerError> {
        let created = operations.iter().map(|operation| match operation {
            Operation::Create2(create) => self.bytes_of(&create.path, create.mode),
            _ => 0,
        });
        let bytes = created.sum();
        self.add(bytes)?;
        Ok(bytes)
    }

    /// Notes the answer to a guarded transaction that has [begun](Self::begin) with these bytes.
    ///
    /// Without an answer, the znodes may exist until the end of the session.
    pub(crate) fn answered(
        &self,
        operations: &[Operation],
        bytes: usize,
        answer: &Result<Vec<Outcome>, TransactionError>,
    ) {
        let outcomes = match answer {
            Ok(outcomes) => outcomes,
            Err(failure) => {
                if matches!(failure.error, ServerError::Refused(_)) {
                    self.remove(bytes);
                }
                return;
            }
        };
        for (operation, outcome) in operations.iter().zip(outcomes) {
            match (operation, outcome) {
                (Operation::Create2(create), Outcome::Create2 { path, .. })
                    if self.bytes_of(&create.path, create.mode) > 0 =>
                {
                    lock(&self.written).insert(path.clone());
                }
                (Operation::Delete(delete), Outcome::Delete)
                    if lock(&self.written).remove(&delete.path) =>
                {
                    self.remove(self.bytes_of(&delete.path, CreateMode::Ephemeral));
                }
                _ => {}
            }
        }
    }
}
