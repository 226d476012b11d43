//! The codec of `zookeeper-recipes-protocol`, with a real server and a client of another
//! project.

use std::sync::{Arc, Mutex};

use zookeeper_client::{Acls, Client, CreateMode as Mode, Error};
use zookeeper_recipes_protocol::*;
use zookeeper_recipes_suite::raw::{Raw, anyone};
use zookeeper_recipes_testkit::proxy::{Fault, Proxy};
use zookeeper_recipes_testkit::{Server, ServerOptions};

async fn server() -> Server {
    let options = ServerOptions::new().extended_types();
    Server::start(options).await.expect("a server starts")
}

/// The servers that the differential test of the simulation compares have no such znodes.
#[tokio::test]
async fn real_server_creates_a_znode_with_a_time_to_live() {
    let server = server().await;
    let mut it = Raw::connect(&server.connect_string());
    it.done(RequestBody::CreateTtl(CreateTtlRequest {
        path: "/t".to_owned(),
        data: Some(b"data".to_vec()),
        acl: anyone(Permission::ALL),
        mode: CreateMode::PersistentWithTtl,
        ttl: 60_000,
    }));
}

/// Apache's decoder and the codec agree on what is no request.
#[tokio::test]
async fn real_server_and_broken_requests() {
    let server = server().await;
    let mut it = Raw::connect(&server.connect_string());
    // A path of length -1. The codec does not encode it, and does not decode it either.
    let broken = [&[0, 0, 0, 13, 0, 0, 0, 1, 0, 0, 0, 3][..], &[0xff; 4], &[0]].concat();
    assert_eq!(
        Request::decode(&broken[FRAME_HEADER..]),
        Err(DecodeError::NullString)
    );
    it.send_bytes(&broken);
    let answer = it.frame().expect("a reply");
    let header = ReplyHeader::peek(&answer).expect("a header");
    assert_eq!((header.xid, header.error), (1, ErrorCode::MarshallingError));

    // Bytes behind the message are ignored.
    let mut frame = Vec::new();
    let path = "/".to_owned();
    let sync = RequestBody::Sync(PathRequest::new(path));
    Request { xid: 2, body: sync }.encode_frame(&mut frame);
    frame.extend([7; 5]);
    let length = (frame.len() - FRAME_HEADER) as u32;
    frame[..FRAME_HEADER].copy_from_slice(&length.to_be_bytes());
    assert!(Request::decode(&frame[FRAME_HEADER..]).is_ok());
    it.send_bytes(&frame);
    let answer = it.frame().expect("a reply");
    let header = ReplyHeader::peek(&answer).expect("a header");
    assert_eq!((header.xid, header.error), (2, ErrorCode::Ok));

    // The limit of a frame is the default of the decoder.
    let longest = (DEFAULT_FRAME_LIMIT as u32 + 1).to_be_bytes();
    it.send_bytes(&longest);
    assert!(it.is_closed());
}

/// Sends requests of many kinds.
async fn send_requests(client: &Client) -> Result<(), Error> {
    let persistent = Mode::Persistent.with_acls(Acls::anyone_all());
    let ephemeral = Mode::EphemeralSequential.with_acls(Acls::creator_all());
    client.create("/a", b"data", &persistent).await?;
    client.create("/a/s-", b"", &ephemeral).await?;
    let (_, _, watcher) = client.get_and_watch_data("/a").await?;
    client.list_children("/a").await?;
    client.get_children("/a").await?;
    client.check_stat("/none-such").await?;
    client.get_acl("/a").await?;
    client.sync("/a").await?;
    client.set_data("/a", b"new", None).await?;
    watcher.changed().await;
    let mut multi = client.new_multi_writer();
    multi.add_check_version("/a", 1)?;
    multi.add_create("/b", b"", &persistent)?;
    multi.add_set_data("/b", b"x", None)?;
    multi.add_delete("/b", None)?;
    multi.commit().await?;
    let mut reads = client.new_multi_reader();
    reads.add_get_data("/a")?;
    reads.add_get_children("/a")?;
    reads.commit().await?;
    drop(
        client
            .watch("/a", zookeeper_client::AddWatchMode::Persistent)
            .await?,
    );
    client.delete("/a/s-0000000000", None).await?;
    Ok(())
}

/// What a client sends is decoded whole: encoded again, it is the same.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_a_real_client_are_decoded_whole() -> Result<(), Error> {
    let server = server().await;
    let proxy = Proxy::start(server.connect_string())
        .await
        .expect("a proxy starts");
    let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
    let frames = seen.clone();
    proxy.fault(Fault::on_any().repeatedly().request_replaced(move |frame| {
        frames.lock().expect("no panic within").push(frame.to_vec());
        frame.to_vec()
    }));
    let client = Client::connector()
        .with_auth("digest", b"user:password")
        .connect(&proxy.connect_string())
        .await?;
    send_requests(&client).await?;

    let seen = seen.lock().expect("no panic within").clone();
    let mut opcodes: Vec<OpCode> = Vec::new();
    for (index, frame) in seen.iter().enumerate() {
        let body = &frame[FRAME_HEADER..];
        let mut again = Vec::new();
        if index == 0 {
            let handshake = ConnectRequest::decode(body).expect("a handshake");
            handshake.encode_frame(&mut again);
        } else {
            let request = Request::decode(body).expect("a request");
            opcodes.push(request.body.opcode());
            request.encode_frame(&mut again);
        }
        assert_eq!(again, *frame, "frame {index}");
    }
    for sent in [OpCode::Auth, OpCode::Multi, OpCode::MultiRead, OpCode::Sync] {
        assert!(opcodes.contains(&sent), "{sent:?} in {opcodes:?}");
    }
    Ok(())
}
