//! Strings that are no UTF-8, and characters beyond U+FFFF, byte for byte as Apache's server has
//! them.

use zookeeper_recipes_protocol::{
    Acl, ErrorCode, OpCode, PathRequest, Permission, ReplyHeader, RequestBody, SetAclRequest,
};
use zookeeper_recipes_simulation::EmbeddedServer;
use zookeeper_recipes_testkit::{Server, ServerOptions};

use crate::raw::{Raw, create, entry};

/// The names of znodes, with what a server makes of each: Java reads U+FFFD for what is no UTF-8,
/// and writes a character beyond U+FFFF as two surrogates of three bytes each.
const NAMES: [(&[u8], &[u8]); 6] = [
    (b"\xc3\xbc", b"\xc3\xbc"),
    (b"\xf0\x9f\x98\x80", b"\xed\xa0\xbd\xed\xb8\x80"),
    (b"\xed\xa0\xbd\xed\xb8\x80", b"\xef\xbf\xbd\xef\xbf\xbd"),
    (b"\xed\xa0\x80", b"\xef\xbf\xbd"),
    (b"\xff\xfe", b"\xef\xbf\xbd\xef\xbf\xbd"),
    (b"\xe2\x82", b"\xef\xbf\xbd"),
];

/// A string as it is in a message.
fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as i32).to_be_bytes(), bytes].concat()
}

/// What a server answers to requests with such strings.
fn answers(address: &str) -> Vec<(ErrorCode, Vec<u8>)> {
    let mut client = Raw::connect(address);
    let mut answers = Vec::new();
    for (name, _) in NAMES {
        let path = string(&[b"/", name].concat());
        let acl = [
            &[0, 0, 0, 1, 0, 0, 0, 31][..],
            &string(b"world"),
            &string(b"anyone"),
        ]
        .concat();
        let creation = [&path[..], &string(b""), &acl, &0_i32.to_be_bytes()].concat();
        let requests = [
            (OpCode::Sync, path.clone()),
            (OpCode::Exists, [&path[..], &[0]].concat()),
            (OpCode::Create, creation),
        ];
        for (opcode, bytes) in requests {
            client.send(RequestBody::Other { opcode, bytes });
            answers.push(answer(&mut client));
        }
    }
    client.done(create(
        "/acl",
        zookeeper_recipes_protocol::CreateMode::Persistent,
    ));
    let acl: Vec<Acl> = vec![
        entry(Permission::READ, "digest", "\u{1f600}:x"),
        entry(Permission::ALL, "world", "anyone"),
    ];
    let (path, version) = ("/acl".to_owned(), -1);
    client.done(RequestBody::SetAcl(SetAclRequest { path, acl, version }));
    let path = "/acl".to_owned();
    client.send(RequestBody::GetAcl(PathRequest { path }));
    let (error, acl) = answer(&mut client);
    // The metadata behind it has times.
    answers.push((error, acl.into_iter().take(30).collect()));
    answers
}

/// The error code of the next reply, and the bytes behind its header.
fn answer(client: &mut Raw) -> (ErrorCode, Vec<u8>) {
    let frame = client.frame().expect("an answer");
    let header = ReplyHeader::peek(&frame).expect("a header");
    (header.error, frame[16..].to_vec())
}

#[tokio::test(flavor = "multi_thread")]
async fn strings_are_read_and_written_as_apaches_server_does() {
    let apache = Server::start(ServerOptions::new())
        .await
        .expect("it starts");
    let embedded = EmbeddedServer::start().expect("it starts");
    let addresses = [apache.connect_string(), embedded.connect_string()];
    let [apaches, ours] = tokio::task::spawn_blocking(move || addresses.map(|it| answers(&it)))
        .await
        .expect("it ends");
    assert_eq!(apaches, ours, "Apache's server, then ours");
    for (answers, (name, read)) in ours.chunks(3).zip(NAMES) {
        let path = [b"/", read].concat();
        assert_eq!(answers[0], (ErrorCode::Ok, string(&path)), "{name:x?}");
        let created = match name {
            b"\xc3\xbc" => ErrorCode::Ok,
            _ => ErrorCode::BadArguments,
        };
        assert_eq!(answers[2].0, created, "{name:x?}");
    }
    let acl = &ours.last().expect("several").1;
    assert!(
        acl.windows(6)
            .any(|part| part == b"\xed\xa0\xbd\xed\xb8\x80"),
        "{acl:x?}"
    );
}
