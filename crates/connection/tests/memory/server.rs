//! A server in memory that keeps nothing.

use std::collections::BTreeSet;
use std::future::ready;
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use zookeeper_recipes_connection::{Connecting, Host, Network, now};
use zookeeper_recipes_protocol::{
    ConnectRequest, ConnectResponse, DEFAULT_FRAME_LIMIT, EventType, FrameDecoder, KeeperState,
    Reply, ReplyBody, Request, RequestBody, Stat, WatcherEvent,
};

/// The network to one server, and how the server behaves.
#[derive(Debug)]
pub(crate) struct Server(Arc<Conduct>);

#[derive(Debug)]
struct Conduct {
    /// The server answers once it has so many requests.
    gathers: watch::Sender<usize>,
    /// How many requests wait for their answers.
    gathered: watch::Sender<usize>,
    /// The number of the connections that were cut.
    cut: watch::Sender<usize>,
    refuses: watch::Sender<bool>,
    reads: watch::Sender<bool>,
}

impl Default for Server {
    fn default() -> Server {
        Server(Arc::new(Conduct {
            gathers: watch::Sender::new(1),
            gathered: watch::Sender::new(0),
            cut: watch::Sender::new(0),
            refuses: watch::Sender::new(false),
            reads: watch::Sender::new(true),
        }))
    }
}

impl Server {
    pub(crate) fn answers_once_it_has(&self, requests: usize) {
        self.0.gathers.send_replace(requests);
    }

    pub(crate) async fn until_it_has(&self, requests: usize) {
        let mut gathered = self.0.gathered.subscribe();
        let gathered = gathered.wait_for(|gathered| *gathered >= requests).await;
        gathered.expect("the server is there");
    }

    pub(crate) fn cut(&self) {
        self.0.cut.send_modify(|cut| *cut += 1);
    }

    pub(crate) fn refuse(&self, refuses: bool) {
        self.0.refuses.send_replace(refuses);
    }

    pub(crate) fn stop_reading(&self, stops: bool) {
        self.0.reads.send_replace(!stops);
    }
}

impl Network for Server {
    fn connect(&self, _host: &Host, _address: SocketAddr, _within: Duration) -> Connecting {
        if *self.0.refuses.borrow() {
            let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
            return Box::pin(ready(Err(refused.into())));
        }
        let (client, server) = duplex(64 << 10);
        let conduct = self.0.clone();
        tokio::spawn(async move {
            let mut cut = conduct.cut.subscribe();
            tokio::select! {
                _ = serve(server, &conduct) => {}
                _ = cut.changed() => {}
            }
        });
        Box::pin(ready(Ok(Box::new(client) as _)))
    }

    fn now(&self) -> Duration {
        now()
    }
}

async fn serve(mut stream: DuplexStream, conduct: &Conduct) -> io::Result<()> {
    let mut bytes = vec![0; 64 << 10];
    let mut decoder = FrameDecoder::new(DEFAULT_FRAME_LIMIT);
    let (mut replies, mut watched) = (Vec::new(), BTreeSet::new());
    let mut is_greeted = false;
    loop {
        let mut reads = conduct.reads.subscribe();
        let reads = reads.wait_for(|reads| *reads).await;
        drop(reads.map_err(io::Error::other)?);
        let number = stream.read(&mut bytes).await?;
        if number == 0 {
            return Ok(());
        }
        decoder.feed(&bytes[..number]);
        let mut gathered = *conduct.gathered.borrow();
        while let Some(frame) = decoder.next_frame().map_err(io::Error::other)? {
            if mem::replace(&mut is_greeted, true) {
                let request = Request::decode(frame).map_err(io::Error::other)?;
                answer(request, &mut watched, &mut replies);
                gathered += 1;
            } else {
                gathered = 0;
                let asked = ConnectRequest::decode(frame).map_err(io::Error::other)?;
                let mut granted = Vec::new();
                grant(&asked).encode_frame(&mut granted);
                stream.write_all(&granted).await?;
            }
        }
        conduct.gathered.send_replace(gathered);
        if gathered >= *conduct.gathers.borrow() {
            conduct.gathered.send_replace(0);
            stream.write_all(&mem::take(&mut replies)).await?;
        }
    }
}

fn grant(asked: &ConnectRequest) -> ConnectResponse {
    ConnectResponse {
        protocol_version: 0,
        timeout: asked.timeout,
        session_id: 77,
        password: vec![1; 16],
        read_only: Some(false),
    }
}

fn answer(request: Request, watched: &mut BTreeSet<String>, replies: &mut Vec<u8>) {
    let body = match request.body {
        RequestBody::Sync(sync) => ReplyBody::Sync { path: sync.path },
        RequestBody::GetData(read) => {
            watched.insert(read.path);
            let (data, stat) = (None, Stat::default());
            ReplyBody::Data { data, stat }
        }
        RequestBody::SetData(write) => {
            if watched.remove(&write.path) {
                let event = WatcherEvent {
                    kind: EventType::NodeDataChanged,
                    state: KeeperState::SyncConnected,
                    path: write.path,
                };
                Reply::notification(event).encode_frame(replies);
            }
            ReplyBody::Stat(Stat::default())
        }
        _ => ReplyBody::Empty,
    };
    Reply::new(request.xid, 1, body).encode_frame(replies);
}
