//! Transactions: several operations in one request, several results in one reply.

use crate::code::{ErrorCode, OpCode};
use crate::data::Stat;
use crate::error::DecodeError;
use crate::jute::{Input, Output, Record, records};
use crate::operation::{
    CheckRequest, CreateRequest, CreateTtlRequest, DeleteRequest, ReadRequest, SetDataRequest,
};

records! {
    /// What is written before each operation and each result, and at the end.
    struct MultiHeader {
        opcode: OpCode,
        done: bool,
        error: ErrorCode,
    }
}

const NO_ERROR_CODE: ErrorCode = ErrorCode::SystemError;

const END: MultiHeader = MultiHeader {
    opcode: OpCode::Error,
    done: true,
    error: NO_ERROR_CODE,
};

/// One operation of a `multi` or a `multiRead`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MultiOperation {
    /// `create`.
    Create(CreateRequest),
    /// `create2`.
    Create2(CreateRequest),
    /// `createContainer`.
    CreateContainer(CreateRequest),
    /// `createTTL`.
    CreateTtl(CreateTtlRequest),
    /// `delete`.
    Delete(DeleteRequest),
    /// `setData`.
    SetData(SetDataRequest),
    /// `check`.
    Check(CheckRequest),
    /// `getData`, in a `multiRead`.
    GetData(ReadRequest),
    /// `getChildren`, in a `multiRead`.
    GetChildren(ReadRequest),
}

impl MultiOperation {
    /// The operation's number.
    pub fn opcode(&self) -> OpCode {
        match self {
            MultiOperation::Create(_) => OpCode::Create,
            MultiOperation::Create2(_) => OpCode::Create2,
            MultiOperation::CreateContainer(_) => OpCode::CreateContainer,
            MultiOperation::CreateTtl(_) => OpCode::CreateTtl,
            MultiOperation::Delete(_) => OpCode::Delete,
            MultiOperation::SetData(_) => OpCode::SetData,
            MultiOperation::Check(_) => OpCode::Check,
            MultiOperation::GetData(_) => OpCode::GetData,
            MultiOperation::GetChildren(_) => OpCode::GetChildren,
        }
    }

    /// The operation's path.
    pub fn path(&self) -> &str {
        match self {
            MultiOperation::Create(request)
            | MultiOperation::Create2(request)
            | MultiOperation::CreateContainer(request) => &request.path,
            MultiOperation::CreateTtl(request) => &request.path,
            MultiOperation::Delete(request) => &request.path,
            MultiOperation::SetData(request) => &request.path,
            MultiOperation::Check(request) => &request.path,
            MultiOperation::GetData(request) | MultiOperation::GetChildren(request) => {
                &request.path
            }
        }
    }

    fn is_read(&self) -> bool {
        matches!(
            self,
            MultiOperation::GetData(_) | MultiOperation::GetChildren(_)
        )
    }

    fn encode(&self, to: &mut Output<'_>) {
        let header = MultiHeader {
            opcode: self.opcode(),
            done: false,
            error: NO_ERROR_CODE,
        };
        header.encode(to);
        match self {
            MultiOperation::Create(request)
            | MultiOperation::Create2(request)
            | MultiOperation::CreateContainer(request) => request.encode(to),
            MultiOperation::CreateTtl(request) => request.encode(to),
            MultiOperation::Delete(request) => request.encode(to),
            MultiOperation::SetData(request) => request.encode(to),
            MultiOperation::Check(request) => request.encode(to),
            MultiOperation::GetData(request) | MultiOperation::GetChildren(request) => {
                request.encode(to);
            }
        }
    }

    fn decode(opcode: OpCode, from: &mut Input<'_>) -> Result<MultiOperation, DecodeError> {
        Ok(match opcode {
            OpCode::Create => MultiOperation::Create(Record::decode(from)?),
            OpCode::Create2 => MultiOperation::Create2(Record::decode(from)?),
            OpCode::CreateContainer => MultiOperation::CreateContainer(Record::decode(from)?),
            OpCode::CreateTtl => MultiOperation::CreateTtl(Record::decode(from)?),
            OpCode::Delete => MultiOperation::Delete(Record::decode(from)?),
            OpCode::SetData => MultiOperation::SetData(Record::decode(from)?),
            OpCode::Check => MultiOperation::Check(Record::decode(from)?),
            OpCode::GetData => MultiOperation::GetData(Record::decode(from)?),
            OpCode::GetChildren => MultiOperation::GetChildren(Record::decode(from)?),
            other => return Err(DecodeError::NotInMulti(other.into())),
        })
    }
}

pub(crate) fn encode_operations(operations: &[MultiOperation], to: &mut Output<'_>) {
    for operation in operations {
        operation.encode(to);
    }
    END.encode(to);
}

/// Apache's server does not accept a transaction of reads and writes either.
pub(crate) fn decode_operations(from: &mut Input<'_>) -> Result<Vec<MultiOperation>, DecodeError> {
    let mut operations: Vec<MultiOperation> = Vec::new();
    loop {
        let header = MultiHeader::decode(from)?;
        if header.done {
            return Ok(operations);
        }
        let operation = MultiOperation::decode(header.opcode, from)?;
        if operations
            .first()
            .is_some_and(|first| first.is_read() != operation.is_read())
        {
            return Err(DecodeError::MixedMulti);
        }
        operations.push(operation);
    }
}

/// One result of a `multi` or a `multiRead`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum MultiResult {
    /// `create` has created the znode at this path.
    Create {
        /// The path, with its number.
        path: String,
    },
    /// `create2`, `createContainer` or `createTTL` has created the znode.
    Create2 {
        /// The path, with its number.
        path: String,
        /// The znode's stat.
        stat: Stat,
    },
    /// `delete` has deleted the znode.
    Delete,
    /// `setData` has written the data.
    SetData {
        /// The znode's stat.
        stat: Stat,
    },
    /// `check` has found the version.
    Check,
    /// `getData`.
    GetData {
        /// The data.
        data: Option<Vec<u8>>,
        /// The znode's stat.
        stat: Stat,
    },
    /// `getChildren`.
    GetChildren {
        /// The names of the children.
        children: Vec<String>,
    },
    /// The operation has failed.
    ///
    /// If an operation of a `multi` fails, all results are errors: [`ErrorCode::Ok`] before it,
    /// [`ErrorCode::RuntimeInconsistency`] behind it.
    Error(ErrorCode),
}

impl MultiResult {
    fn opcode(&self) -> OpCode {
        match self {
            MultiResult::Create { .. } => OpCode::Create,
            MultiResult::Create2 { .. } => OpCode::Create2,
            MultiResult::Delete => OpCode::Delete,
            MultiResult::SetData { .. } => OpCode::SetData,
            MultiResult::Check => OpCode::Check,
            MultiResult::GetData { .. } => OpCode::GetData,
            MultiResult::GetChildren { .. } => OpCode::GetChildren,
            MultiResult::Error(_) => OpCode::Error,
        }
    }

    fn encode(&self, to: &mut Output<'_>) {
        let header = MultiHeader {
            opcode: self.opcode(),
            done: false,
            error: match self {
                MultiResult::Error(error) => *error,
                _ => ErrorCode::Ok,
            },
        };
        header.encode(to);
        match self {
            MultiResult::Create { path } => path.encode(to),
            MultiResult::Create2 { path, stat } => {
                path.encode(to);
                stat.encode(to);
            }
            MultiResult::Delete | MultiResult::Check => {}
            MultiResult::SetData { stat } => stat.encode(to),
            MultiResult::GetData { data, stat } => {
                data.encode(to);
                stat.encode(to);
            }
            MultiResult::GetChildren { children } => children.encode(to),
            MultiResult::Error(error) => error.encode(to),
        }
    }

    fn decode(opcode: OpCode, from: &mut Input<'_>) -> Result<MultiResult, DecodeError> {
        Ok(match opcode {
            OpCode::Create => MultiResult::Create {
                path: Record::decode(from)?,
            },
            OpCode::Create2 => MultiResult::Create2 {
                path: Record::decode(from)?,
                stat: Record::decode(from)?,
            },
            OpCode::Delete => MultiResult::Delete,
            OpCode::SetData => MultiResult::SetData {
                stat: Record::decode(from)?,
            },
            OpCode::Check => MultiResult::Check,
            OpCode::GetData => MultiResult::GetData {
                data: Record::decode(from)?,
                stat: Record::decode(from)?,
            },
            OpCode::GetChildren => MultiResult::GetChildren {
                children: Record::decode(from)?,
            },
            OpCode::Error => MultiResult::Error(Record::decode(from)?),
            other => return Err(DecodeError::NotInMulti(other.into())),
        })
    }
}

pub(crate) fn encode_results(results: &[MultiResult], to: &mut Output<'_>) {
    for result in results {
        result.encode(to);
    }
    END.encode(to);
}

pub(crate) fn decode_results(from: &mut Input<'_>) -> Result<Vec<MultiResult>, DecodeError> {
    let mut results = Vec::new();
    loop {
        let header = MultiHeader::decode(from)?;
        if header.done {
            return Ok(results);
        }
        results.push(MultiResult::decode(header.opcode, from)?);
    }
}
