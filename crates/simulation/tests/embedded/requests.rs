//! Requests that any bytes stand for, and a client that sends them to a server.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use zookeeper_recipes_protocol::{
    Acl, AddWatchMode, AddWatchRequest, AuthId, AuthRequest, CheckRequest, ConnectRequest,
    CreateMode, CreateRequest, DeleteRequest, FRAME_HEADER, MultiOperation, PASSWORD_LENGTH,
    PathRequest, Permission, ReadRequest, Request, RequestBody, SetAclRequest, SetDataRequest,
    SetWatchesRequest, WatcherType, WatchesRequest,
};

/// Longer than the server takes to close a connection that its client has ended.
const PATIENCE: Duration = Duration::from_secs(10);

const PATHS: [&str; 10] = [
    "/",
    "/a",
    "/a/b",
    "/a/b/c",
    "/zookeeper",
    "/zookeeper/config",
    "",
    "a",
    "//",
    "/a/",
];

/// What a client sends: a handshake, and what these bytes stand for.
pub(crate) fn stream_of(bytes: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    let Some((how, mut bytes)) = bytes.split_first() else {
        return stream;
    };
    // One stream in eight begins without a handshake.
    if how % 8 != 0 {
        let handshake = ConnectRequest {
            protocol_version: 0,
            last_zxid_seen: 0,
            timeout: 1_000,
            session_id: 0,
            password: vec![0; PASSWORD_LENGTH],
            read_only: (how % 2 == 0).then_some(how % 3 == 0),
        };
        handshake.encode_frame(&mut stream);
    }
    let mut xid = 0;
    while let [kind, opcode, path, number, rest @ ..] = bytes {
        xid += 1;
        let (given, after) = rest.split_at(rest.len().min(usize::from(number % 64)));
        bytes = after;
        // Most streams go on for long: the server closes the connection at the first raw bytes.
        match kind % 32 {
            0 => stream.extend(given),
            1..8 => {
                let mut body = Vec::from(i32::to_be_bytes(xid));
                body.extend(i32::from(*opcode as i8).to_be_bytes());
                body.extend(given);
                stream.extend((body.len() as u32).to_be_bytes());
                stream.extend(body);
            }
            kind => {
                bytes = rest;
                let body = request(*opcode, *path, *number);
                let start = stream.len();
                Request { xid, body }.encode_frame(&mut stream);
                // One request in some loses a byte of its body, and its length says so.
                if kind == 31 && stream.len() > start + FRAME_HEADER {
                    stream.pop();
                    let length = (stream.len() - start - FRAME_HEADER) as u32;
                    stream[start..start + FRAME_HEADER].copy_from_slice(&length.to_be_bytes());
                }
            }
        }
    }
    stream
}

/// A request of one of the kinds that servers know.
fn request(kind: u8, path: u8, number: u8) -> RequestBody {
    let version = i32::from(number as i8);
    let at = PATHS[usize::from(path) % PATHS.len()].to_owned();
    let read = |path| ReadRequest {
        path,
        watch: number % 2 == 0,
    };
    match kind % 20 {
        0 => RequestBody::Create(create(path, number)),
        1 => RequestBody::Create2(create(path, number)),
        2 => RequestBody::CreateContainer(create(path, number)),
        3 => RequestBody::Delete(DeleteRequest { path: at, version }),
        4 => RequestBody::Exists(read(at)),
        5 => RequestBody::GetData(read(at)),
        6 => RequestBody::GetChildren(read(at)),
        7 => RequestBody::GetChildren2(read(at)),
        8 => RequestBody::SetData(set_data(at, version)),
        9 => RequestBody::SetAcl(SetAclRequest {
            path: at,
            acl: acl(number),
            version: -1,
        }),
        10 => RequestBody::GetAcl(PathRequest { path: at }),
        11 => RequestBody::Sync(PathRequest { path: at }),
        12 | 13 => RequestBody::Multi(operations(path, number)),
        14 => RequestBody::MultiRead(vec![
            MultiOperation::GetData(read(at.clone())),
            MultiOperation::GetChildren(read(at)),
        ]),
        15 => RequestBody::SetWatches(SetWatchesRequest {
            relative_zxid: version.into(),
            data_watches: vec![at.clone()],
            exist_watches: vec![at.clone(), at.clone()],
            child_watches: vec![at],
        }),
        16 => RequestBody::AddWatch(AddWatchRequest {
            path: at,
            mode: AddWatchMode::from(version),
        }),
        17 => RequestBody::RemoveWatches(WatchesRequest {
            path: at,
            kind: WatcherType::from(version),
        }),
        18 => RequestBody::Auth(AuthRequest {
            kind: 0,
            scheme: ["digest", "ip", "world", ""][usize::from(number) % 4].to_owned(),
            auth: (number % 5 != 0).then(|| vec![b'a', b':', number]),
        }),
        _ => match number % 4 {
            0 => RequestBody::CloseSession,
            1 => RequestBody::Ping,
            2 => RequestBody::WhoAmI,
            _ => RequestBody::GetAllChildrenNumber(PathRequest { path: at }),
        },
    }
}

fn operations(path: u8, number: u8) -> Vec<MultiOperation> {
    let version = i32::from(number as i8 / 16);
    let at = |place: u8| PATHS[usize::from(path.wrapping_add(place)) % PATHS.len()].to_owned();
    (0..number % 5)
        .map(|place| match (path ^ place) % 4 {
            0 => MultiOperation::Create2(create(path.wrapping_add(place), number)),
            1 => MultiOperation::Check(CheckRequest {
                path: at(place),
                version,
            }),
            2 => MultiOperation::SetData(set_data(at(place), version)),
            _ => MultiOperation::Delete(DeleteRequest {
                path: at(place),
                version,
            }),
        })
        .collect()
}

fn create(path: u8, number: u8) -> CreateRequest {
    CreateRequest {
        path: PATHS[usize::from(path) % PATHS.len()].to_owned(),
        data: (number % 3 != 0).then(|| vec![number; usize::from(number % 7)]),
        acl: acl(number),
        mode: CreateMode::from(i32::from(number / 16) - 1),
    }
}

fn set_data(path: String, version: i32) -> SetDataRequest {
    SetDataRequest {
        path,
        data: Some(vec![1]),
        version,
    }
}

fn acl(number: u8) -> Vec<Acl> {
    match number % 6 {
        0 => Vec::new(),
        1 => vec![Acl::new(Permission::READ, AuthId::authed())],
        _ => vec![Acl::new(Permission::ALL, AuthId::anyone())],
    }
}

/// Sends a stream, ends it, and reads what the server answers until it has closed the connection.
pub(crate) fn send(address: &str, stream: &[u8]) {
    let mut connection = TcpStream::connect(address).expect("the server listens");
    let patience = Some(PATIENCE);
    connection
        .set_read_timeout(patience)
        .expect("an open socket");
    // The server may have closed the connection at the first bytes.
    let _ = connection.write_all(stream);
    let _ = connection.shutdown(Shutdown::Write);
    match connection.read_to_end(&mut Vec::new()) {
        Ok(_) => {}
        Err(error) => {
            let kind = error.kind();
            assert_eq!(kind, std::io::ErrorKind::ConnectionReset, "{stream:?}");
        }
    }
}

/// Opens a session and closes it, as a client does that has sent nothing wrong.
pub(crate) fn serves_others(address: &str) {
    let mut other = Vec::new();
    let handshake = ConnectRequest {
        protocol_version: 0,
        last_zxid_seen: 0,
        timeout: 1_000,
        session_id: 0,
        password: vec![0; PASSWORD_LENGTH],
        read_only: None,
    };
    handshake.encode_frame(&mut other);
    let body = RequestBody::CloseSession;
    Request { xid: 77, body }.encode_frame(&mut other);
    let mut connection = TcpStream::connect(address).expect("the server listens");
    let patience = Some(PATIENCE);
    connection
        .set_read_timeout(patience)
        .expect("an open socket");
    connection.write_all(&other).expect("the server reads");
    let mut answer = Vec::new();
    connection
        .read_to_end(&mut answer)
        .expect("the server answers");
    // The answer to the handshake, and the reply to the close.
    let handshake = FRAME_HEADER + 4 + 4 + 8 + 4 + PASSWORD_LENGTH;
    let reply = answer.get(handshake + FRAME_HEADER..handshake + FRAME_HEADER + 4);
    assert_eq!(reply, Some(&77_i32.to_be_bytes()[..]), "{answer:?}");
}
