/// Why a message could not be decoded.
///
/// A server answers such a request with [`ErrorCode::MarshallingError`](crate::ErrorCode), or
/// closes the connection if the request has no header.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The message ends before the value does.
    #[error("the message ends too early: {needed} bytes needed, {left} left")]
    Truncated {
        /// How many bytes the value takes, at least.
        needed: u64,
        /// How many bytes of the message are left.
        left: usize,
    },
    /// A string or a buffer has a negative length other than -1.
    #[error("a length of {0} bytes")]
    NegativeLength(i32),
    /// A string that must be there has the length -1.
    #[error("a string of length -1 in place of a required string")]
    NullString,
    /// A transaction contains an operation that none can contain.
    #[error("operation {0} in a transaction")]
    NotInMulti(i32),
    /// A transaction contains a read and a write.
    #[error("a read and a write in one transaction")]
    MixedMulti,
}
