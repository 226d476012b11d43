//! A connection that can be cut: what a client meets when its network fails.

use std::io;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Passes connections on to a server until it is cut.
pub(crate) struct Link {
    port: u16,
    whole: Arc<watch::Sender<bool>>,
}

impl Link {
    pub(crate) async fn to(server: String) -> io::Result<Link> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let whole = Arc::new(watch::Sender::new(true));
        let passing = whole.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let mut whole = passing.subscribe();
                let server = server.clone();
                tokio::spawn(pass(client, server, async move {
                    // An error means that the test is over.
                    let _ = whole.wait_for(|whole| !whole).await;
                }));
            }
        });
        Ok(Link { port, whole })
    }

    pub(crate) fn connect_string(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn cut(&self) {
        self.whole.send_replace(false);
    }

    pub(crate) fn mend(&self) {
        self.whole.send_replace(true);
    }
}

async fn pass(mut client: TcpStream, server: String, cut: impl Future<Output = ()>) {
    let pass = async {
        let mut server = TcpStream::connect(server).await?;
        copy_bidirectional(&mut client, &mut server).await
    };
    tokio::select! {
        biased;
        () = cut => {}
        // However a connection ends, both of its ends are closed.
        _ = pass => {}
    }
}
