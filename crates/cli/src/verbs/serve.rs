//! `zkr serve`: a page, JSON and metrics of all queues.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use tokio::net::TcpListener;
use tokio::sync::watch;
use zookeeper_recipes_core::Session;
use zookeeper_recipes_http::{Admission, guarded, serve};
use zookeeper_recipes_overview::Overview;

use crate::addresses::AddressBook;
use crate::connecting::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use crate::serve::{Served, Showing, Token, follow, router, snapshot};
use crate::signals::ended_by_signal;

/// A look is not recent if it is older than this, and than three intervals.
const OLDEST: Duration = Duration::from_secs(30);

/// Serve a page of all queues at a path and below it, the same as JSON, and Prometheus metrics.
///
/// The page shows who holds, who waits and for whom, and possible deadlocks with the commands that
/// break them. It changes nothing. Prometheus reads /metrics. Programs read /api/overview,
/// /api/queue?path=PATH, /api/sessions and the server-sent events of /events. Each user of this
/// machine can read the page, unless --token-file is set. Ctrl-C ends it.
#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Where to look.
    #[arg(default_value = "/")]
    prefix: String,

    /// The address and the port to listen at. Port 0 picks a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9470")]
    listen: SocketAddr,

    /// Allow an address in --listen that other machines can reach. It needs --token-file.
    ///
    /// The port does not speak TLS: put a proxy that does in front of it.
    #[arg(long, requires = "token_file")]
    allow_remote: bool,

    /// A name that browsers and proxies ask for, beside localhost and IP addresses. Repeatable.
    #[arg(long, value_name = "NAME")]
    host: Vec<String>,

    /// Answer only requests with the token in the first line of this file.
    ///
    /// The page asks for the token. Others send the header `Authorization: Bearer TOKEN`. Make the
    /// file readable by its owner only.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Hide the data of contenders: who holds and who waits is shown by session and address only.
    #[arg(long)]
    redact: bool,

    /// The pause between two looks.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration::parse)]
    interval: Duration,

    /// How many queues have metrics of their own: those in the most trouble.
    #[arg(long, value_name = "N", default_value_t = 50)]
    metrics_paths: usize,
}

impl Serve {
    pub(crate) async fn run(&self, connection: &Connection) -> Result<Exit, Failure> {
        if self.interval.is_zero() {
            return Err(Failure::usage("--interval must not be zero"));
        }
        if !self.listen.ip().is_loopback() && !self.allow_remote {
            let problem = "is reached by other machines: add --allow-remote and --token-file";
            return Err(Failure::usage(format!(
                "--listen {} {problem}",
                self.listen
            )));
        }
        let token = self.token_file.as_deref().map(Token::read).transpose()?;
        let listener = self.listener().await?;
        let serve =
            async |session: &Session| self.serve(session, connection, listener, token).await;
        connection.within(serve).await
    }

    async fn listener(&self) -> Result<TcpListener, Failure> {
        let listener = TcpListener::bind(self.listen).await;
        listener.map_err(|error| {
            let exit = match error.kind() {
                std::io::ErrorKind::AddrInUse => Exit::PortInUse,
                std::io::ErrorKind::PermissionDenied => Exit::NoPermission,
                _ => Exit::Usage,
            };
            Failure::new(exit, format!("cannot listen at {}: {error}", self.listen))
        })
    }

    async fn serve(
        &self,
        session: &Session,
        connection: &Connection,
        listener: TcpListener,
        token: Option<Token>,
    ) -> Result<Exit, Failure> {
        let address = listener.local_addr();
        let address = address.map_err(|error| Failure::internal("cannot listen", error))?;
        let mut live = Overview::watch(session, &self.prefix, self.interval).await?;
        let mut book = AddressBook::new(session, connection);
        let showing = Showing {
            is_redacted: self.redact,
            // Who reads the page has other files.
            zkr: connection.command(false).into(),
        };
        let first = snapshot(&mut live, &mut book, showing.clone(), None).await?;
        let (sender, snapshots) = watch::channel(first);
        let (ends, ending) = watch::channel(false);
        let oldest = OLDEST.max(self.interval * 3);
        let served = Served::new(snapshots, ending, token, self.metrics_paths, oldest);
        let router = guarded(router(served), Admission::named(self.host.clone()));
        let ended = ended();
        print(&format!(
            "http://{address}/ shows the queues of {} and below. Ctrl-C ends it.\n",
            self.prefix
        ))?;
        let end = async {
            ended.await;
            ends.send_replace(true);
        };
        tokio::select! {
            biased;
            () = serve(listener, router, end) => Ok(Exit::Done),
            followed = follow(live, book, showing, sender) => {
                followed?;
                let problem = "the session is closed, so nothing is looked at any more";
                Err(Failure::new(Exit::Unavailable, problem))
            }
        }
    }
}

/// Resolves when a signal ends the program. Signals are received from the call on.
fn ended() -> impl Future<Output = ()> {
    let signal = ended_by_signal();
    async move {
        if cfg!(unix) {
            signal.await;
        } else {
            // An error means that no signal can be awaited.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}
