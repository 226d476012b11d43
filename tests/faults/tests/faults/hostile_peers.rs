//! Peers that speak almost-ZooKeeper.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use zookeeper_recipes_core::{ConnectOptions, Session};
use zookeeper_recipes_protocol::{
    ConnectResponse, OpCode, PASSWORD_LENGTH, Reply, ReplyBody, RequestHeader, xid,
};
use zookeeper_recipes_suite::{
    Address, KINDS, LONG, TestServer, administrator, in_time, on_both_servers, session,
};
use zookeeper_recipes_testkit::proxy::{Fault, Operation, Proxy};

use crate::support::{acquire, acquired, assert_nothing_left};

on_both_servers!(apache at night:
    garbled_replies_of_a_true_server_are_errors_in_time_and_bar_nobody_else,);

const SEEDS: u64 = 60;
const SESSION: Duration = Duration::from_secs(2);
const DEADLINE: Duration = Duration::from_secs(1);
/// What a frame without a header counts as.
const NO_HEADER: RequestHeader = RequestHeader {
    xid: 0,
    opcode: OpCode::Notification,
};
/// What a client may send, connections included, in the few seconds that it tries.
const REQUESTS: u64 = 1500;

/// Answers a handshake, and signs of life, as it should, unless the dice want otherwise; and all
/// else with garbage.
async fn speak(mut stream: TcpStream, mut dice: Rng, heard: Arc<AtomicU64>) -> std::io::Result<()> {
    let mut first = true;
    loop {
        let length = stream.read_u32().await? as usize;
        let mut request = vec![0; length.min(1 << 20)];
        stream.read_exact(&mut request).await?;
        heard.fetch_add(1, Ordering::Relaxed);
        if std::mem::take(&mut first) && dice.u8(..) >= 30 {
            stream.write_all(&good_handshake()).await?;
            continue;
        }
        let header = RequestHeader::peek(&request).unwrap_or(NO_HEADER);
        let greets = header.xid == xid::PING || header.opcode == OpCode::Auth;
        if greets && dice.u8(..) >= 60 {
            let mut answer = Vec::new();
            Reply::new(header.xid, 0, ReplyBody::Empty).encode_frame(&mut answer);
            stream.write_all(&answer).await?;
            continue;
        }
        match nonsense(header.xid, &mut dice) {
            Nonsense::Body(body) => {
                stream.write_u32(body.len() as u32).await?;
                stream.write_all(&body).await?;
            }
            Nonsense::Length(length) => {
                stream.write_u32(length).await?;
                stream.write_all(&random(&mut dice, 100)).await?;
                if length == CUT_SHORT {
                    return Ok(());
                }
            }
            Nonsense::Silence => {}
        }
    }
}

/// The length of a frame that is cut short.
const CUT_SHORT: u32 = 100;

/// What comes instead of an answer.
enum Nonsense {
    Body(Vec<u8>),
    /// A length, and less than that.
    Length(u32),
    Silence,
}

fn random(dice: &mut Rng, most: usize) -> Vec<u8> {
    (0..dice.usize(..most)).map(|_| dice.u8(..)).collect()
}

fn nonsense(xid: i32, dice: &mut Rng) -> Nonsense {
    let xid = xid.to_be_bytes();
    Nonsense::Body(match dice.u8(..9) {
        // A good header and garbage after it.
        0 | 1 => [&xid[..], &9_i64.to_be_bytes(), &[0; 4], &random(dice, 80)].concat(),
        // Any error code.
        2 => [&xid[..], &9_i64.to_be_bytes(), &random(dice, 5)].concat(),
        // Another's number.
        3 => [&dice.i32(..).to_be_bytes()[..], &[0; 12], &random(dice, 40)].concat(),
        // A notification of nonsense.
        4 => [&(-1_i32).to_be_bytes()[..], &[0; 12], &random(dice, 40)].concat(),
        5 => random(dice, 200),
        // A huge or a negative length.
        6 => return Nonsense::Length(dice.u32(1 << 24..)),
        7 => return Nonsense::Length(CUT_SHORT),
        _ => return Nonsense::Silence,
    })
}

fn good_handshake() -> Vec<u8> {
    let response = ConnectResponse {
        protocol_version: 0,
        timeout: SESSION.as_millis() as i32,
        session_id: 0x77,
        password: vec![7; PASSWORD_LENGTH],
        read_only: Some(false),
    };
    let mut frame = Vec::new();
    response.encode_frame(&mut frame);
    frame
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_after_a_good_handshake_is_an_error_in_time_and_no_spin() {
    let attempts = (0..SEEDS).map(|seed| async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let heard = Arc::new(AtomicU64::new(0));
        let counter = heard.clone();
        let peer = tokio::spawn(async move {
            let mut dice = Rng::with_seed(seed);
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                connections.spawn(speak(stream, dice.fork(), counter.clone()));
            }
        });
        let options = ConnectOptions::new()
            .session_timeout(SESSION)
            .connection_timeout(LONG);
        let opening = Session::connect_with(&address, options);
        let opened = in_time("the handshake", opening).await;
        let was_opened = opened.is_ok();
        if let Ok(session) = opened {
            let attempts = KINDS.iter().map(async |kind| {
                let recipe = kind.on(&session, "garbage");
                // Any outcome is right, if it comes in time.
                let acquiring = recipe.acquire_timeout(DEADLINE);
                if let Ok(hold) = in_time(kind.name, acquiring).await {
                    let _ = tokio::time::timeout(DEADLINE, hold.release()).await;
                }
                let _ = tokio::time::timeout(DEADLINE, recipe.try_acquire()).await;
                let _ = tokio::time::timeout(DEADLINE, recipe.contenders()).await;
            });
            join_all(attempts).await;
            in_time("the close", session.close()).await;
        }
        let heard = heard.load(Ordering::Relaxed);
        assert!(heard < REQUESTS, "seed {seed}: {heard} requests");
        peer.abort();
        was_opened
    });
    // In tasks of their own, so that a panic is theirs and found.
    let attempts = join_all(attempts.map(tokio::spawn)).await;
    let opened = attempts
        .into_iter()
        .filter(|attempt| *attempt.as_ref().expect("no panic"));
    assert!(
        opened.count() as u64 > SEEDS / 2,
        "most handshakes are good in the end"
    );
}

/// The peer answers each handshake with a frame of 2 GiB, and sends as much of it as is read.
#[tokio::test(flavor = "multi_thread")]
async fn handshake_that_claims_2_gib_is_an_error_that_says_so() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let sent = Arc::new(AtomicU64::new(0));
    let counter = sent.clone();
    let peer = tokio::spawn(async move {
        let part = vec![0; 1 << 20];
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(&i32::MAX.to_be_bytes()).await;
            while stream.write_all(&part).await.is_ok() {
                counter.fetch_add(part.len() as u64, Ordering::Relaxed);
            }
        }
    });
    let options = ConnectOptions::new()
        .session_timeout(SESSION)
        .connection_timeout(DEADLINE);
    let opening = Session::connect_with(&address, options);
    let opened = in_time("an error", opening).await;
    let text = opened.expect_err("no session").to_string();
    assert!(text.contains("a frame of 2147483647 bytes"), "{text}");
    let sent = sent.load(Ordering::Relaxed);
    assert!(sent < 1 << 30, "{sent} bytes");
    peer.abort();
}

async fn garbled_replies_of_a_true_server_are_errors_in_time_and_bar_nobody_else(
    server: TestServer,
) {
    let administrator = administrator(&server).await;
    let rival = session(&server, LONG).await;
    let attempts = (0..SEEDS / 2).map(|seed| {
        let connect_string = server.address();
        async move {
            let proxy = Proxy::start(&connect_string).await.expect("a proxy");
            let victim = session(&proxy, SESSION).await;
            let dice = Arc::new(Mutex::new(Rng::with_seed(seed)));
            for operation in [
                Operation::Create,
                Operation::Delete,
                Operation::GetChildren,
                Operation::GetData,
                Operation::Sync,
            ] {
                let dice = dice.clone();
                let occasion = Fault::on(operation).repeatedly();
                proxy.fault(occasion.reply_replaced(move |reply| {
                    garbled(reply, &mut dice.lock().expect("no panic within"))
                }));
            }
            let attempts = KINDS.iter().map(async |kind| {
                let recipe = kind.on(&victim, &format!("garbled-{seed}"));
                if let Ok(hold) = recipe.acquire_timeout(DEADLINE).await {
                    let _ = tokio::time::timeout(DEADLINE, hold.release()).await;
                }
            });
            join_all(attempts).await;
            let sent = proxy.counters().requests();
            assert!(sent < REQUESTS, "seed {seed}: {sent} requests");
        }
    });
    for attempt in join_all(attempts.map(tokio::spawn)).await {
        attempt.expect("no panic");
    }
    for &kind in KINDS {
        for seed in 0..SEEDS / 2 {
            let scenario = format!("garbled-{seed}");
            let hold = acquired(&scenario, acquire(kind.rival_on(&rival, &scenario))).await;
            hold.release().await.expect("it is released");
            assert_nothing_left(&server, &administrator, kind, &scenario).await;
        }
    }
}

/// Most often the reply as it is. The length stays true: what is in the frame does not.
fn garbled(reply: &[u8], dice: &mut Rng) -> Vec<u8> {
    let mut reply = reply.to_vec();
    match dice.u8(..8) {
        0 => reply[4..].iter_mut().for_each(|byte| *byte = dice.u8(..)),
        1 if reply.len() > 20 => {
            reply.truncate(dice.usize(20..reply.len()));
            let length = (reply.len() - 4) as u32;
            reply[..4].copy_from_slice(&length.to_be_bytes());
        }
        2 => reply[4..8].fill(dice.u8(..)),
        3 if reply.len() > 20 => {
            let place = dice.usize(20..reply.len());
            reply[place] ^= 1 << dice.u8(..8);
        }
        _ => {}
    }
    reply
}
