//! Just enough of ZooKeeper's own protocol to open a session and to end one.

use std::io;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, PASSWORD_LENGTH, Request, RequestBody,
};

use crate::error::Error;
use crate::frames::{FrameReader, Read};

/// The timeout that a session of ours asks for. The session is closed at once.
const SESSION_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait before the session is taken over again.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

/// Opens a session through the server at `address` and closes it again. Both are transactions: a
/// server that can do this has a quorum.
pub(crate) async fn open_and_close(address: &str, patience: Duration) -> Result<(), Error> {
    let handshake = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(&connect_request(None)).await?;
        let mut frames = FrameReader::new();
        if !is_granted(&next_frame(&mut frames, &mut stream).await?) {
            return Err(io::Error::other("the session was refused"));
        }
        stream.write_all(&close_request()).await?;
        next_frame(&mut frames, &mut stream).await
    };
    let outcome = match timeout(patience, handshake).await {
        Ok(outcome) => outcome,
        Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
    };
    outcome.map(drop).map_err(unanswered(address))
}

/// Ends a session: takes it over with the password that the server gave it, and closes it. Its
/// owner sees an expiry.
pub(crate) async fn end_session(
    address: &str,
    session_id: i64,
    patience: Duration,
) -> Result<(), Error> {
    let deadline = Instant::now() + patience;
    // The owner may reconnect and take the session back before it is closed. The session is over only
    // when the server no longer knows it.
    let mut known = false;
    loop {
        let outcome = match timeout_at(deadline, take_and_close(address, session_id)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(io::Error::from(io::ErrorKind::TimedOut)),
        };
        match outcome {
            Ok(Takeover::Closed) => return Ok(()),
            Ok(Takeover::Unknown) if known => return Ok(()),
            Ok(Takeover::Unknown) => {
                return Err(Error::UnknownSession {
                    address: address.to_owned(),
                    session_id,
                });
            }
            Ok(Takeover::TakenBack) => known = true,
            Err(source) if source.kind() == io::ErrorKind::TimedOut => {
                return Err(unanswered(address)(source));
            }
            Err(source) if Instant::now() >= deadline => return Err(unanswered(address)(source)),
            // The server may have done it before the connection broke.
            Err(_) => known = true,
        }
        sleep(BETWEEN_TRIES).await;
    }
}

enum Takeover {
    Closed,
    TakenBack,
    Unknown,
}

async fn take_and_close(address: &str, session_id: i64) -> io::Result<Takeover> {
    let mut stream = TcpStream::connect(address).await?;
    // Both go in one packet, to minimise the gap between them.
    let mut requests = connect_request(Some(session_id));
    requests.extend(close_request());
    stream.write_all(&requests).await?;
    let mut frames = FrameReader::new();
    if !is_granted(&next_frame(&mut frames, &mut stream).await?) {
        return Ok(Takeover::Unknown);
    }
    match next_frame(&mut frames, &mut stream).await {
        Ok(_) => Ok(Takeover::Closed),
        Err(_) => Ok(Takeover::TakenBack),
    }
}

fn unanswered(address: &str) -> impl FnOnce(io::Error) -> Error {
    let address = address.to_owned();
    move |source| Error::Unanswered {
        address,
        question: "a session's handshake",
        source,
    }
}

/// Asks for this session. `None` asks for a new one.
fn connect_request(session_id: Option<i64>) -> Vec<u8> {
    let mut request = ConnectRequest::new(SESSION_TIMEOUT);
    if let Some(session_id) = session_id {
        request.session_id = session_id;
        request.password = password(session_id).to_vec();
    }
    let mut frame = Vec::new();
    request.encode_frame(&mut frame);
    frame
}

fn close_request() -> Vec<u8> {
    let request = Request {
        xid: 1,
        body: RequestBody::CloseSession,
    };
    let mut frame = Vec::new();
    request.encode_frame(&mut frame);
    frame
}

async fn next_frame(frames: &mut FrameReader, stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    match frames.next(stream).await? {
        Read::Frame(body) => Ok(body),
        Read::NoFrame(_) => Err(io::Error::from(io::ErrorKind::InvalidData)),
        Read::End => Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
    }
}

/// True if the answer to a handshake grants the session. False if the session is no more.
fn is_granted(answer: &[u8]) -> bool {
    ConnectResponse::decode(answer).is_ok_and(|response| response.is_granted())
}

/// The password of a session: a server makes it from the id alone, with `java.util.Random` seeded
/// by `id ^ 0xB3415C00` (`ZooKeeperServer.generatePasswd`), so that any other server of the
/// ensemble can check it.
fn password(session_id: i64) -> [u8; PASSWORD_LENGTH] {
    const MULTIPLIER: u64 = 0x5_DEEC_E66D;
    const MASK: u64 = (1 << 48) - 1;
    let mut state = ((session_id ^ 0xB341_5C00) as u64 ^ MULTIPLIER) & MASK;
    let mut password = [0; PASSWORD_LENGTH];
    for chunk in password.chunks_mut(4) {
        state = state.wrapping_mul(MULTIPLIER).wrapping_add(0xB) & MASK;
        chunk.copy_from_slice(&((state >> 16) as u32).to_le_bytes());
    }
    password
}
