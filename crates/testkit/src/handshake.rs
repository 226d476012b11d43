//! Just enough of ZooKeeper's own protocol to open a session and to end one.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::error::Error;

/// The timeout that a session of ours asks for; it is closed at once anyway.
const SESSION_TIMEOUT: Duration = Duration::from_secs(5);

/// How long to wait before the session is taken over again.
const BETWEEN_TRIES: Duration = Duration::from_millis(5);

const CLOSE_SESSION: i32 = -11;
const PASSWORD_LENGTH: usize = 16;

/// No answer to a handshake or a close is longer.
const LONGEST_ANSWER: usize = 1024;

/// Opens a session through the server at `address` and closes it again. Both are transactions: a
/// server that can do this has a quorum.
pub(crate) async fn open_and_close(address: &str, patience: Duration) -> Result<(), Error> {
    let handshake = async {
        let mut stream = TcpStream::connect(address).await?;
        stream
            .write_all(&connect_request(0, [0; PASSWORD_LENGTH]))
            .await?;
        if granted_timeout(&read_frame(&mut stream).await?) <= 0 {
            return Err(io::Error::other("the session was refused"));
        }
        stream.write_all(&close_request()).await?;
        read_frame(&mut stream).await
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
    // The owner reconnects while we are at it, and may take the session back before it is closed.
    // So it is over only when the server says that it no longer knows it.
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
    // In one packet, so that there is as little time as can be between the two.
    let mut requests = connect_request(session_id, password(session_id));
    requests.extend(close_request());
    stream.write_all(&requests).await?;
    if granted_timeout(&read_frame(&mut stream).await?) <= 0 {
        return Ok(Takeover::Unknown);
    }
    match read_frame(&mut stream).await {
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

fn connect_request(session_id: i64, password: [u8; PASSWORD_LENGTH]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(0_i32.to_be_bytes()); // protocol version
    body.extend(0_i64.to_be_bytes()); // last zxid seen
    body.extend((SESSION_TIMEOUT.as_millis() as i32).to_be_bytes());
    body.extend(session_id.to_be_bytes());
    body.extend((PASSWORD_LENGTH as i32).to_be_bytes());
    body.extend(password);
    body.push(0); // not read-only
    frame(&body)
}

fn close_request() -> Vec<u8> {
    let mut body = Vec::new();
    body.extend(1_i32.to_be_bytes()); // xid
    body.extend(CLOSE_SESSION.to_be_bytes());
    frame(&body)
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut frame = Vec::from((body.len() as u32).to_be_bytes());
    frame.extend(body);
    frame
}

async fn read_frame(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let length = stream.read_u32().await? as usize;
    if length > LONGEST_ANSWER {
        return Err(io::Error::from(io::ErrorKind::InvalidData));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(body)
}

/// The session timeout in milliseconds that a handshake's answer grants: 0 when the session is no
/// more.
fn granted_timeout(answer: &[u8]) -> i32 {
    match answer.get(4..8).map(<[u8; 4]>::try_from) {
        Some(Ok(bytes)) => i32::from_be_bytes(bytes),
        _ => 0,
    }
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
