//! Transactions: several operations in one request, several results in one reply.

use std::cmp::Ordering;

use crate::code::{CreateMode, ErrorCode, OpCode};
use crate::data::{Acl, Stat};
use crate::error::DecodeError;
use crate::jute::{Input, Output, Record, records};
use crate::message::{operations, results};
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

/// Encodes the header of an operation or a result.
fn encode_header(opcode: OpCode, error: ErrorCode, to: &mut Output<'_>) {
    let done = false;
    MultiHeader {
        opcode,
        done,
        error,
    }
    .encode(to);
}

/// Decodes what comes behind each header. An operation that `decode` does not know is an error.
fn decode_all<T>(
    from: &mut Input<'_>,
    decode: fn(OpCode, &mut Input<'_>) -> Result<Option<T>, DecodeError>,
) -> Result<Vec<T>, DecodeError> {
    let mut decoded = Vec::new();
    loop {
        let MultiHeader { opcode, done, .. } = Record::decode(from)?;
        if done {
            return Ok(decoded);
        }
        let one = decode(opcode, from)?;
        decoded.push(one.ok_or(DecodeError::NotInMulti(opcode.into()))?);
    }
}

operations! {
    /// One operation of a `multi` or a `multiRead`.
    pub enum Operation {
        /// `create`.
        Create(fields: CreateRequest),
        /// `create2`.
        Create2(fields: CreateRequest),
        /// `createContainer`.
        CreateContainer(fields: CreateRequest),
        /// `createTTL`.
        CreateTtl(fields: CreateTtlRequest),
        /// `delete`.
        Delete(fields: DeleteRequest),
        /// `setData`.
        SetData(fields: SetDataRequest),
        /// `check`.
        Check(fields: CheckRequest),
        /// `getData`, in a `multiRead`.
        GetData(fields: ReadRequest),
        /// `getChildren`, in a `multiRead`.
        GetChildren(fields: ReadRequest),
    }
}

/// The version of a write or a check that any version of the data meets.
const ANY: i32 = -1;

impl Operation {
    /// The znode must exist, with any version of its data.
    pub fn check(path: impl Into<String>) -> Operation {
        Operation::Check(CheckRequest {
            path: path.into(),
            version: ANY,
        })
    }

    /// Creates a znode at `path`, to which the server appends a number if the mode is sequential.
    pub fn create(
        path: impl Into<String>,
        data: impl Into<Vec<u8>>,
        mode: CreateMode,
        acl: impl Into<Vec<Acl>>,
    ) -> Operation {
        let create = CreateRequest {
            path: path.into(),
            data: Some(data.into()),
            acl: acl.into(),
            mode,
        };
        match mode {
            // A server refuses a container that is asked for by the operation of any other znode.
            CreateMode::Container => Operation::CreateContainer(create),
            _ => Operation::Create2(create),
        }
    }

    /// Replaces a znode's data, whatever its version.
    pub fn set_data(path: impl Into<String>, data: impl Into<Vec<u8>>) -> Operation {
        Operation::SetData(SetDataRequest {
            path: path.into(),
            data: Some(data.into()),
            version: ANY,
        })
    }

    /// Deletes a znode, whatever the version of its data.
    pub fn delete(path: impl Into<String>) -> Operation {
        Operation::Delete(DeleteRequest {
            path: path.into(),
            version: ANY,
        })
    }

    /// The same check, write or deletion, which demands this version of the znode's data.
    #[must_use]
    pub fn at_version(mut self, demanded: i32) -> Operation {
        match &mut self {
            Operation::Check(CheckRequest { version, .. })
            | Operation::SetData(SetDataRequest { version, .. })
            | Operation::Delete(DeleteRequest { version, .. }) => *version = demanded,
            _ => {}
        }
        self
    }

    /// The operation's path.
    pub fn path(&self) -> &str {
        match self {
            Operation::Create(request)
            | Operation::Create2(request)
            | Operation::CreateContainer(request) => &request.path,
            Operation::CreateTtl(request) => &request.path,
            Operation::Delete(request) => &request.path,
            Operation::SetData(request) => &request.path,
            Operation::Check(request) => &request.path,
            Operation::GetData(request) | Operation::GetChildren(request) => &request.path,
        }
    }

    /// The operation's path, to change it.
    pub fn path_mut(&mut self) -> &mut String {
        match self {
            Operation::Create(request)
            | Operation::Create2(request)
            | Operation::CreateContainer(request) => &mut request.path,
            Operation::CreateTtl(request) => &mut request.path,
            Operation::Delete(request) => &mut request.path,
            Operation::SetData(request) => &mut request.path,
            Operation::Check(request) => &mut request.path,
            Operation::GetData(request) | Operation::GetChildren(request) => &mut request.path,
        }
    }

    /// True for a part of a `multiRead`, and false for a part of a `multi`.
    pub fn is_read(&self) -> bool {
        matches!(self, Operation::GetData(_) | Operation::GetChildren(_))
    }
}

impl Record for Vec<Operation> {
    const SMALLEST: usize = MultiHeader::SMALLEST;

    fn encode(&self, to: &mut Output<'_>) {
        for operation in self {
            encode_header(operation.opcode(), NO_ERROR_CODE, to);
            operation.encode(to);
        }
        END.encode(to);
    }

    /// Apache's server does not accept a transaction of reads and writes either.
    fn decode(from: &mut Input<'_>) -> Result<Vec<Operation>, DecodeError> {
        let operations: Vec<_> = decode_all(from, Operation::decode)?;
        let reads = operations.iter().filter(|it| it.is_read()).count();
        match reads == 0 || reads == operations.len() {
            true => Ok(operations),
            false => Err(DecodeError::MixedMulti),
        }
    }
}

results! {
    /// One result of a `multi` or a `multiRead`.
    pub enum Outcome {
        /// `create` has created the znode at this path.
        Create {
            /// The path, with its number.
            path: String,
        } for Create,
        /// `create2`, `createContainer` or `createTTL` has created the znode.
        Create2 {
            /// The path, with its number.
            path: String,
            /// The znode's stat.
            stat: Stat,
        } for Create2,
        /// `delete` has deleted the znode.
        Delete for Delete,
        /// `setData` has written the data.
        SetData {
            /// The znode's stat.
            stat: Stat,
        } for SetData,
        /// `check` has found the version.
        Check for Check,
        /// `getData`.
        GetData {
            /// The data.
            data: Option<Vec<u8>>,
            /// The znode's stat.
            stat: Stat,
        } for GetData,
        /// `getChildren`.
        GetChildren {
            /// The names of the children.
            children: Vec<String>,
        } for GetChildren,
        /// The operation has failed.
        ///
        /// If an operation of a `multi` fails, all results are errors: [`ErrorCode::Ok`] before it,
        /// [`ErrorCode::RuntimeInconsistency`] behind it.
        Error(error: ErrorCode) for Error,
    }
}

impl Outcome {
    /// The results of a `multi` of so many operations that fails at this one.
    pub fn failed(operations: usize, at: usize, error: ErrorCode) -> Vec<Outcome> {
        let error_of = |index: usize| match index.cmp(&at) {
            Ordering::Less => ErrorCode::Ok,
            Ordering::Equal => error,
            Ordering::Greater => ErrorCode::RuntimeInconsistency,
        };
        let errors = (0..operations).map(error_of);
        errors.map(Outcome::Error).collect()
    }

    fn opcode(&self) -> OpCode {
        match self {
            Outcome::Create { .. } => OpCode::Create,
            Outcome::Create2 { .. } => OpCode::Create2,
            Outcome::Delete => OpCode::Delete,
            Outcome::SetData { .. } => OpCode::SetData,
            Outcome::Check => OpCode::Check,
            Outcome::GetData { .. } => OpCode::GetData,
            Outcome::GetChildren { .. } => OpCode::GetChildren,
            Outcome::Error(_) => OpCode::Error,
        }
    }

    fn error(&self) -> ErrorCode {
        match self {
            Outcome::Error(error) => *error,
            _ => ErrorCode::Ok,
        }
    }
}

impl Record for Vec<Outcome> {
    const SMALLEST: usize = MultiHeader::SMALLEST;

    fn encode(&self, to: &mut Output<'_>) {
        for result in self {
            encode_header(result.opcode(), result.error(), to);
            result.encode(to);
        }
        END.encode(to);
    }

    fn decode(from: &mut Input<'_>) -> Result<Vec<Outcome>, DecodeError> {
        decode_all(from, Outcome::decode)
    }
}
