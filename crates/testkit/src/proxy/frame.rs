//! ZooKeeper's frames: a length, then as many bytes.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use super::operation::Operation;

/// A length beyond this is no frame's. ZooKeeper itself draws the line at one mebibyte for requests;
/// replies may be longer.
const LONGEST: usize = 64 << 20;

const LENGTH: usize = 4;

/// What comes from a connection.
pub(super) enum Read {
    /// A whole frame, with its length in front.
    Frame(Vec<u8>),
    /// The beginning of what is no frame: a four-letter word, or garbage.
    NoFrame(Vec<u8>),
    End,
}

/// Reads one frame.
pub(super) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Read> {
    let mut frame = vec![0; LENGTH];
    let mut filled = 0;
    while filled < LENGTH {
        match stream.read(&mut frame[filled..]).await? {
            0 if filled == 0 => return Ok(Read::End),
            0 => {
                frame.truncate(filled);
                return Ok(Read::NoFrame(frame));
            }
            more => filled += more,
        }
    }
    match Cursor(&frame).int() {
        Some(length) if (0..=LONGEST as i64).contains(&i64::from(length)) => {
            let length = length.unsigned_abs() as usize;
            let body = stream.take(length as u64).read_to_end(&mut frame).await?;
            if body < length {
                return Ok(Read::NoFrame(frame));
            }
            Ok(Read::Frame(frame))
        }
        _ => Ok(Read::NoFrame(frame)),
    }
}

/// What a frame from a client says, as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) xid: i32,
    pub(super) operation: Operation,
    /// The operation code, and those of the operations in a transaction.
    pub(super) codes: Vec<i32>,
    pub(super) paths: Vec<String>,
}

impl Request {
    /// What has no header that would say more.
    pub(super) fn of(operation: Operation) -> Request {
        Request {
            xid: 0,
            operation,
            codes: Vec::new(),
            paths: Vec::new(),
        }
    }

    /// Reads a frame that is not the first of its connection.
    pub(super) fn parse(frame: &[u8]) -> Option<Request> {
        let mut cursor = Cursor(frame.get(LENGTH..)?);
        let xid = cursor.int()?;
        let code = cursor.int()?;
        let operation = Operation::from_code(code);
        let mut codes = vec![code];
        let paths = match operation {
            Operation::Create
            | Operation::Delete
            | Operation::Exists
            | Operation::GetData
            | Operation::SetData
            | Operation::GetAcl
            | Operation::SetAcl
            | Operation::GetChildren
            | Operation::Sync
            | Operation::AddWatch
            | Operation::RemoveWatches => cursor.string().into_iter().collect(),
            Operation::Multi | Operation::MultiRead => {
                let parts = std::iter::from_fn(|| next_operation(&mut cursor));
                let (inner, paths): (Vec<i32>, Vec<String>) = parts.unzip();
                codes.extend(inner);
                paths
            }
            _ => Vec::new(),
        };
        Some(Request {
            xid,
            operation,
            codes,
            paths,
        })
    }
}

/// The header of a frame from a server, but for the first of its connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplyHeader {
    pub(super) xid: i32,
    pub(super) zxid: i64,
}

impl ReplyHeader {
    pub(super) fn parse(frame: &[u8]) -> Option<ReplyHeader> {
        let mut cursor = Cursor(frame.get(LENGTH..)?);
        Some(ReplyHeader {
            xid: cursor.int()?,
            zxid: cursor.long()?,
        })
    }

    /// A whole reply that says no more than this, and an error code.
    pub(super) fn refusal(self, code: i32) -> Vec<u8> {
        let mut frame = Vec::from(16_u32.to_be_bytes());
        frame.extend(self.xid.to_be_bytes());
        frame.extend(self.zxid.to_be_bytes());
        frame.extend(code.to_be_bytes());
        frame
    }
}

/// The path in a notification.
pub(super) fn notified_path(frame: &[u8]) -> Option<String> {
    // The length, the header (xid, zxid, error), the type of the event and the state.
    Cursor(frame.get(LENGTH + 16 + 8..)?).string()
}

/// A handshake with no session id and no password in it.
///
/// The password keeps its length, since the server answers with one as long.
pub(super) fn without_session(handshake: &[u8]) -> Vec<u8> {
    // The length, the protocol's version, the last zxid seen and the timeout.
    const ID: usize = LENGTH + 4 + 8 + 4;
    const PASSWORD: usize = ID + 8 + 4;
    let mut frame = handshake.to_vec();
    if let Some(id) = frame.get_mut(ID..ID + 8) {
        id.fill(0);
    }
    let mut cursor = Cursor(handshake.get(PASSWORD - 4..).unwrap_or_default());
    if let Some(password) = cursor.buffer() {
        frame[PASSWORD..PASSWORD + password.len()].fill(0);
    }
    frame
}

/// The code and the path of a transaction's next operation: `None` at the end, and at what is not
/// known here.
fn next_operation(cursor: &mut Cursor<'_>) -> Option<(i32, String)> {
    const CHECK: i32 = 13;
    let code = cursor.int()?;
    let done = cursor.byte()? != 0;
    cursor.int()?;
    if done {
        return None;
    }
    let path = cursor.string()?;
    match (code, Operation::from_code(code)) {
        (CHECK, _) | (_, Operation::Delete) => {
            cursor.int()?;
        }
        (_, Operation::SetData) => {
            cursor.buffer()?;
            cursor.int()?;
        }
        (_, Operation::Create) => {
            cursor.buffer()?;
            for _ in 0..cursor.int()? {
                cursor.int()?;
                cursor.string()?;
                cursor.string()?;
            }
            cursor.int()?;
            const WITH_TIME_TO_LIVE: i32 = 21;
            if code == WITH_TIME_TO_LIVE {
                cursor.long()?;
            }
        }
        (_, Operation::GetData | Operation::GetChildren | Operation::Exists) => {
            cursor.byte()?;
        }
        _ => {}
    }
    Some((code, path))
}

/// Reads the values of ZooKeeper's serialization one after the other.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    fn int(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<i64> {
        Some(i64::from_be_bytes(self.take(8)?.try_into().ok()?))
    }

    /// A length of -1 stands for none.
    fn buffer(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.int()?).unwrap_or(0);
        self.take(length)
    }

    fn string(&mut self) -> Option<String> {
        self.buffer()
            .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        let mut bytes = Vec::from((text.len() as u32).to_be_bytes());
        bytes.extend(text.as_bytes());
        bytes
    }

    fn framed(parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        [&(body.len() as u32).to_be_bytes()[..], &body].concat()
    }

    #[test]
    fn paths_of_all_kinds_in_a_transaction_are_found() {
        let header = |code: i32| [&code.to_be_bytes()[..], &[0], &[0xff; 4]].concat();
        let acl = [
            &1_i32.to_be_bytes()[..],
            &31_i32.to_be_bytes(),
            &string("world"),
            &string("anyone"),
        ]
        .concat();
        let frame = framed(&[
            &7_i32.to_be_bytes(),
            &14_i32.to_be_bytes(),
            &header(13),
            &string("/checked"),
            &[0; 4],
            &header(15),
            &string("/created"),
            &string("data"),
            &acl,
            &[0; 4],
            &header(5),
            &string("/set"),
            &[0xff; 4],
            &[0; 4],
            &header(2),
            &string("/deleted"),
            &[0; 4],
            &(-1_i32).to_be_bytes(),
            &[1],
            &[0xff; 4],
        ]);
        let request = Request::parse(&frame).expect("a request");
        assert_eq!((request.xid, request.operation), (7, Operation::Multi));
        assert_eq!(request.codes, [14, 13, 15, 5, 2]);
        assert_eq!(request.paths, ["/checked", "/created", "/set", "/deleted"]);
    }

    #[test]
    fn handshake_without_its_session_is_a_first_one() {
        let handshake = |id: i64, password: [u8; 16]| {
            framed(&[
                &[0; 4],
                &77_i64.to_be_bytes(),
                &6000_i32.to_be_bytes(),
                &id.to_be_bytes(),
                &16_i32.to_be_bytes(),
                &password,
                &[1],
            ])
        };
        let first = handshake(0, [0; 16]);
        assert_eq!(without_session(&handshake(0x77, [9; 16])), first);
        assert_eq!(without_session(&first), first);
    }

    #[test]
    fn requests_that_are_cut_short_are_no_reason_to_panic() {
        let frame = framed(&[
            &7_i32.to_be_bytes(),
            &15_i32.to_be_bytes(),
            &string("/long"),
        ]);
        for length in 0..frame.len() {
            let _ = Request::parse(&frame[..length]);
            let _ = ReplyHeader::parse(&frame[..length]);
            let _ = notified_path(&frame[..length]);
            let _ = without_session(&frame[..length]);
        }
        let endless = [&frame[..12], &[0x7f, 0xff, 0xff, 0xff]].concat();
        assert_eq!(Request::parse(&endless).expect("a request").paths, [""; 0]);
    }
}
