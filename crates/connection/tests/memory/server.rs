//! A server in memory that remembers nothing.

use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use zookeeper_recipes_connection::{Connecting, Host, Network, now};

use crate::peer::{Ensemble, Served};

/// The network to one server, and how the server behaves.
#[derive(Debug)]
pub(crate) struct Server(Arc<Conduct>);

#[derive(Debug)]
struct Conduct {
    ensemble: Mutex<Ensemble>,
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
        let mut ensemble = Ensemble::default();
        let znodes = ["/asked", "/watched"].map(str::to_owned);
        ensemble.znodes.extend(znodes);
        Server(Arc::new(Conduct {
            ensemble: Mutex::new(ensemble),
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
        // What the peer remembers would count.
        self.0.ensemble.lock().expect("no panic").requests = Vec::new();
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
    let mut served = Served::new();
    loop {
        let mut reads = conduct.reads.subscribe();
        let reads = reads.wait_for(|reads| *reads).await;
        drop(reads.map_err(io::Error::other)?);
        let number = stream.read(&mut bytes).await?;
        if number == 0 {
            return Ok(());
        }
        let gathered = {
            let mut ensemble = conduct.ensemble.lock().expect("no panic");
            ensemble.receive(&mut served, &bytes[..number]);
            let is_greeting = !ensemble.handshakes.is_empty();
            let gathered = ensemble.requests.len();
            let are_all = gathered >= *conduct.gathers.borrow();
            if is_greeting || are_all {
                // What the peer remembers would count.
                ensemble.handshakes.clear();
                ensemble.requests.clear();
                ensemble.requests.shrink_to(64);
                ensemble.history.clear();
            }
            ensemble.requests.len()
        };
        conduct.gathered.send_replace(gathered);
        if gathered == 0 {
            stream.write_all(&served.to_client).await?;
            served.to_client.clear();
            served.to_client.shrink_to(64 << 10);
        }
    }
}
