//! Clients that send garbage, do not read, say nothing, or come by the thousand.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use zookeeper_recipes_core::ensemble::CreateMode as Kind;
use zookeeper_recipes_protocol::{
    Acl, AddWatchMode, AddWatchRequest, AuthId, CreateMode, CreateRequest, DeleteRequest,
    ErrorCode, OpCode, Operation, Permission, RequestBody,
};
use zookeeper_recipes_simulation::EmbeddedServer;

use crate::raw::{Raw, at, create};
use crate::{embedded, resume, served};

fn is_closed(mut stream: TcpStream) -> bool {
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("an open socket");
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => true,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[test]
fn garbage_closes_the_connection_and_no_other() {
    let (server, mut other) = served();
    let frames: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        &[0xff; 64],
        &[0x7f, 0xff, 0xff, 0xff, 1, 2, 3],
        &[0, 0, 0, 3, 1, 2, 3],
        &[0, 0, 0, 0],
    ];
    for bytes in frames {
        let mut stream = TcpStream::connect(server.connect_string()).expect("it listens");
        stream.write_all(bytes).expect("a server that reads");
        assert!(is_closed(stream), "{bytes:?}");
    }
    other.done(RequestBody::Exists(at("/", false)));
}

#[test]
fn garbage_in_a_session_closes_its_connection_and_the_session_lives() {
    let server = EmbeddedServer::start().expect("it starts");
    for bytes in [&[0xff; 64][..], &[0, 0, 0, 2, 1, 2]] {
        let mut client = Raw::connect(&server.connect_string());
        client.done(create("/alive", CreateMode::Ephemeral));
        client.send_bytes(bytes);
        assert!(client.is_closed(), "{bytes:?}");
        let mut again = resume(&server.connect_string(), &client);
        again.done(RequestBody::Exists(at("/alive", false)));
        again.done(RequestBody::CloseSession);
    }
}

#[test]
fn request_that_cannot_be_read_is_answered_with_an_error() {
    let (_server, mut client) = served();
    client.send(RequestBody::Other {
        opcode: OpCode::GetData,
        bytes: vec![0, 0, 0, 9],
    });
    let reply = client.reply().expect("an answer");
    assert_eq!(reply.header.error, ErrorCode::MarshallingError);
    client.done(RequestBody::Exists(at("/", false)));
}

#[test]
fn request_of_an_unknown_type_is_answered_and_ends_the_connection() {
    let (_server, mut client) = served();
    let unknown = || RequestBody::Other {
        opcode: OpCode::Unknown(4242),
        bytes: Vec::new(),
    };
    assert_eq!(client.fails(unknown()), ErrorCode::Unimplemented);
    assert!(client.is_closed());

    let server = embedded(|it| it.closes_at_unknown_requests = true);
    let mut client = Raw::connect(&server.connect_string());
    client.send(unknown());
    assert!(client.reply().is_none(), "the connection is closed");
}

#[test]
fn client_that_never_reads_is_closed_and_the_others_are_served() {
    let server = embedded(|it| it.queue_limit = 1 << 20);
    let mut other = Raw::connect(&server.connect_string());
    let mut silent = Raw::connect(&server.connect_string());
    let watch = AddWatchRequest {
        path: "/".to_owned(),
        mode: AddWatchMode::PersistentRecursive,
    };
    silent.done(RequestBody::AddWatch(watch));
    let path = format!("/{}", "long-".repeat(1_000));
    let began = Instant::now();
    while !server.administrator().watches().is_empty() {
        other.done(create(&path, CreateMode::Persistent));
        let version = -1;
        let path = path.clone();
        other.done(RequestBody::Delete(DeleteRequest { path, version }));
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it is still there"
        );
    }
    other.done(RequestBody::Exists(at("/", false)));
}

#[test]
fn client_that_asks_for_much_and_reads_late_gets_it_all() {
    let (server, mut client) = served();
    let administrator = server.administrator();
    let made = administrator.create("/large", &vec![7; 500_000], Kind::Persistent);
    made.expect("it is new");
    for _ in 0..200 {
        client.send(RequestBody::GetData(at("/large", false)));
    }
    for _ in 0..200 {
        let reply = client.reply().expect("an answer");
        assert_eq!(reply.header.error, ErrorCode::Ok);
    }
}

/// The most memory that this process has had, in MiB.
#[cfg(target_os = "linux")]
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.expect("a number") >> 10
}

#[cfg(target_os = "linux")]
#[test]
fn long_access_control_list_takes_its_memory_once() {
    let entry = |number| Acl {
        permissions: Permission::ALL,
        id: AuthId::new("digest", &format!("user:{number}")),
    };
    let anyone = Acl {
        permissions: Permission::ALL,
        id: AuthId::anyone(),
    };
    let node = |path: String, acl| CreateRequest {
        path,
        data: None,
        acl,
        mode: CreateMode::Persistent,
    };
    let (_server, mut client) = served();
    let mut long: Vec<Acl> = (0..4_000).map(entry).collect();
    long.push(anyone.clone());
    client.done(RequestBody::Create(node("/long".to_owned(), long)));
    client.done(RequestBody::AddWatch(AddWatchRequest {
        path: "/long".to_owned(),
        mode: AddWatchMode::Persistent,
    }));
    let child = |number| node(format!("/long/{number}"), vec![anyone.clone()]);
    let children = (0..5_000).map(|number| Operation::Create(child(number)));
    let before = peak_memory();
    client.done(RequestBody::Multi(children.collect()));
    let grown = peak_memory() - before;
    assert!(grown < 1_000, "{grown} MiB for one transaction");
}

#[test]
fn client_that_never_ends_its_first_frame_is_closed() {
    let server = EmbeddedServer::start().expect("it starts");
    let mut stream = TcpStream::connect(server.connect_string()).expect("it listens");
    let pause = Some(Duration::from_millis(200));
    stream.set_read_timeout(pause).expect("an open socket");
    stream.write_all(&[0, 0, 100, 0]).expect("it reads");
    let began = Instant::now();
    let is_open = |stream: &mut TcpStream| {
        let written = stream.write_all(&[0]);
        let waits = |error: std::io::Error| error.kind() == std::io::ErrorKind::WouldBlock;
        written.is_ok() && stream.read(&mut [0]).is_err_and(waits)
    };
    while is_open(&mut stream) {
        assert!(
            began.elapsed() < Duration::from_secs(60),
            "it is still open"
        );
    }
}

#[cfg(target_os = "linux")]
#[test]
fn request_for_a_large_znode_many_times_is_refused() {
    let server = EmbeddedServer::start().expect("it starts");
    let administrator = server.administrator();
    let made = administrator.create("/large", &vec![7; 500_000], Kind::Persistent);
    made.expect("it is new");
    let mut client = Raw::connect(&server.connect_string());
    let reads = |count| {
        let read = || Operation::GetData(at("/large", false));
        RequestBody::MultiRead((0..count).map(|_| read()).collect())
    };
    let before = peak_memory();
    assert_eq!(client.fails(reads(1_600)), ErrorCode::BadArguments);
    let grown = peak_memory() - before;
    assert!(grown < 1_000, "{grown} MiB for one request");
    client.done(reads(4));
}

#[test]
fn half_open_connection_ends_when_its_session_has_expired() {
    let server = embedded(|it| {
        it.simulation.tick = Duration::from_millis(100);
        it.simulation.max_session_timeout = Some(Duration::from_millis(300));
    });
    let mut client = Raw::connect(&server.connect_string());
    client.done(create("/mine", CreateMode::Ephemeral));
    assert!(client.is_closed());
    let began = Instant::now();
    while server.administrator().children("/") != ["zookeeper"] {
        assert!(began.elapsed() < Duration::from_secs(60), "it never ends");
        std::thread::yield_now();
    }
}

#[test]
fn thousand_clients_are_served_at_once() {
    let server = EmbeddedServer::start().expect("it starts");
    let address = server.connect_string();
    let mut clients: Vec<Raw> = (0..1_000).map(|_| Raw::connect(&address)).collect();
    for client in &mut clients {
        client.send(create("/queue-", CreateMode::EphemeralSequential));
    }
    for client in &mut clients {
        let reply = client.reply().expect("an answer");
        assert_eq!(reply.header.error, ErrorCode::Ok);
    }
    assert_eq!(server.administrator().children("/").len(), 1_001);
    for client in &mut clients {
        client.done(RequestBody::CloseSession);
    }
    assert_eq!(server.administrator().children("/"), ["zookeeper"]);
}
