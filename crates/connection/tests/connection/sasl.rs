//! SASL: who asks is shown over each connection, before anything else.

use zookeeper_recipes_connection::{Config, DisconnectReason, SessionEnd, WatchedRead};
use zookeeper_recipes_protocol::{ErrorCode, OpCode};

use crate::peer::Challenge;
use crate::world::{T, Way, World, config};

fn world(hosts: usize, credentials: &str) -> World {
    let auth = ["digest", "sasl"].map(|it| (it.to_owned(), credentials.as_bytes().to_vec()));
    let mut world = World::new(Config {
        auth: auth.to_vec(),
        ..config(hosts)
    });
    world.ensemble.conduct.sasl = Some(server);
    world
}

fn challenge() -> Challenge {
    Ok(Some(
        br#"realm="zk-sasl-md5",nonce="once",charset=utf-8,algorithm=md5-sess"#.to_vec(),
    ))
}

/// A server at which bob's password is "secret".
fn server(token: &[u8]) -> Challenge {
    if token.is_empty() {
        return challenge();
    }
    let token = String::from_utf8(token.to_vec()).expect("text");
    let (_, cnonce) = token.split_once("cnonce=\"").expect("a nonce");
    let (cnonce, _) = cnonce.split_once('"').expect("its end");
    let md5 = |bytes: &[u8]| md5::compute(bytes);
    let mut session = md5(b"bob:zk-sasl-md5:secret").to_vec();
    session.extend(format!(":once:{cnonce}").bytes());
    let digest = |method: &str| {
        let method = md5(format!("{method}:zookeeper/zk-sasl-md5").as_bytes());
        let all = format!("{:x}:once:00000001:{cnonce}:auth:{method:x}", md5(&session));
        format!("{:x}", md5(all.as_bytes()))
    };
    match token.contains(&format!("response={},", digest("AUTHENTICATE"))) {
        true => Ok(Some(format!("rspauth={}", digest("")).into_bytes())),
        false => Err(ErrorCode::AuthFailed),
    }
}

#[test]
fn exchange_comes_before_all_else_over_each_connection() {
    let mut world = world(2, "bob:secret");
    world.create("/a");
    let watch = world.watch(WatchedRead::Exists, "/b");
    world.until(World::all_answered);
    world.reconnect();
    let [sasl, auth] = [OpCode::Sasl, OpCode::Auth];
    let first = [
        sasl,
        sasl,
        auth,
        OpCode::Ping,
        OpCode::Create,
        OpCode::Exists,
    ];
    let again = [sasl, sasl, auth, OpCode::SetWatches];
    assert_eq!(world.received(), [&first[..], &again].concat());
    assert!(!world.seen.contains_key(&watch));
    assert_eq!(world.connects.len(), 2);
}

/// It refuses the password, has no SASL, challenges by another mechanism, or does not know the
/// password itself.
const REFUSALS: [fn(&[u8]) -> Challenge; 6] = [
    |token| match token.is_empty() {
        true => challenge(),
        false => Err(ErrorCode::AuthFailed),
    },
    |_| Err(ErrorCode::SessionClosedRequireSaslAuth),
    |_| Err(ErrorCode::AuthFailed),
    |_| Ok(None),
    |_| Ok(Some(b"AUTH=KERBEROS_V4".to_vec())),
    |token| match token.is_empty() {
        true => challenge(),
        false => Ok(Some(b"rspauth=00000000000000000000000000000000".to_vec())),
    },
];

#[test]
fn refusal_when_the_session_is_opened_is_the_end() {
    for refuses in REFUSALS {
        let mut world = world(3, "bob:secret");
        world.ensemble.conduct.sasl = Some(refuses);
        world.until(|world| world.end().is_some());
        assert_eq!(world.end(), Some(SessionEnd::AuthenticationFailed));
        assert_eq!(world.connects.len(), 1);
        let obstacle = world.obstacle(world.connects[0].1);
        assert_matches!(obstacle, Some(DisconnectReason::AuthenticationFailed(it)) if it == "sasl");
        assert!(!world.received().contains(&OpCode::Auth));
    }
}

#[test]
fn wrong_password_is_refused() {
    for credentials in ["bob:wrong", "bob", "alice:secret", ""] {
        let mut world = world(1, credentials);
        world.until(|world| world.end().is_some());
        assert_eq!(
            world.end(),
            Some(SessionEnd::AuthenticationFailed),
            "{credentials}"
        );
    }
}

#[test]
fn refusal_at_a_reconnect_is_the_end_after_three() {
    for refuses in REFUSALS {
        let mut world = world(2, "bob:secret");
        world.until(World::is_connected);
        world.ensemble.conduct.sasl = Some(refuses);
        world.close_connection();
        world.until(|world| world.end().is_some());
        assert_eq!(world.end(), Some(SessionEnd::AuthenticationFailed));
        assert_eq!(world.connects.len(), 1 + 3);
    }
}

#[test]
fn refusal_that_passes_keeps_the_session() {
    let mut world = world(2, "bob:secret");
    world.until(World::is_connected);
    let session = world.machine.session_id();
    for refuses in REFUSALS {
        world.ensemble.conduct.sasl = Some(refuses);
        world.close_connection();
        let before = world.connects.len();
        world.until(|world| world.connects.len() == before + 1);
        world.ensemble.conduct.sasl = Some(server);
        world.settle();
        world.until(World::is_connected);
        assert_eq!(world.machine.session_id(), session);
    }
}

/// As Apache's, if it has no SASL. Others close the connection, because they do not know the request.
#[test]
fn server_that_does_not_answer_the_exchange_is_left_and_the_request_is_named() {
    for is_mute in [true, false] {
        let mut world = world(2, "bob:secret");
        match is_mute {
            true => world.ensemble.conduct.mute = vec![OpCode::Sasl],
            false => world.ensemble.conduct.closes_at = Some(OpCode::Sasl),
        }
        world.pass(T);
        assert!(world.connects.len() > 1 && !world.is_connected());
        let host = world.connects[0].1;
        match is_mute {
            true => assert_matches!(
                world.obstacle(host),
                Some(DisconnectReason::Unanswered {
                    opcode: OpCode::Sasl,
                    ..
                })
            ),
            false => assert_matches!(
                world.obstacle(host),
                Some(DisconnectReason::ClosedAt(OpCode::Sasl))
            ),
        }
        world.ensemble.conduct.mute.clear();
        world.ensemble.conduct.closes_at = None;
        world.until(World::is_connected);
    }
}

#[test]
fn exchange_in_single_bytes_is_the_same_and_shows_no_password() {
    let mut world = world(1, "bob:secret");
    world.fragment = 1;
    while !world.is_connected() {
        let shown = format!("{:?}", world.machine);
        assert!(
            !shown.contains("secret") && !shown.contains("115, 101, 99"),
            "{shown}"
        );
        world.step();
    }
    assert_eq!(world.connects.len(), 1);
}

/// The holds are lost with the session, as by any end.
#[test]
fn session_that_expires_before_the_exchange_ends() {
    let mut world = world(1, "bob:secret");
    world.until(World::is_connected);
    world.ways.fill(Way::Refused);
    world.lose_connection();
    world.ensemble.sessions.clear();
    world.ways.fill(Way::Member);
    world.until(|world| world.end().is_some());
    assert_eq!(world.end(), Some(SessionEnd::Expired));
}
