//! Connecting: the options that all verbs share, and the session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use zookeeper_recipes_core::{ConnectOptions, Session, TlsOptions};

use crate::credentials;
use crate::duration;
use crate::failure::Failure;
#[cfg(unix)]
use crate::failure::warn;
use crate::plain_text::quoted;

/// The longest wait for the server's word that the session is closed.
const GOODBYE: Duration = Duration::from_secs(2);

/// A restart of a server and an election are often longer.
pub(crate) const SHORT_SILENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The servers, with an optional chroot: `zk1:2181,zk2:2181/app`.
    #[arg(
        long,
        global = true,
        value_name = "HOSTS",
        env = "ZOOKEEPER_CONNECT",
        default_value = "127.0.0.1:2181"
    )]
    pub(crate) connect: String,

    /// How long the servers keep the session of a zkr that is silent.
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", env = "ZKR_SESSION_TIMEOUT", value_parser = duration::parse)]
    pub(crate) session_timeout: Duration,

    /// The servers' `tickTime`, which lets a lock survive longer disturbances.
    ///
    /// `zkr doctor` recommends a value.
    #[arg(long, global = true, value_name = "DURATION", env = "ZKR_TICK", value_parser = duration::parse)]
    pub(crate) tick: Option<Duration>,

    /// Give up if no server answers within this time.
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s", value_parser = duration::parse)]
    connect_timeout: Duration,

    /// A file of credentials, one per line, such as `digest:user:password`.
    ///
    /// Make it readable by its owner only. Without it, the lines come from ZKR_CREDENTIALS, which the
    /// command that zkr runs does not inherit.
    #[arg(long, global = true, value_name = "FILE")]
    credentials_file: Option<PathBuf>,

    /// Encrypt every connection. A server that does not speak TLS is refused.
    #[arg(long, global = true, env = "ZKR_TLS")]
    tls: bool,

    /// A PEM file of the certificates to trust, instead of those that the system trusts.
    #[arg(long, global = true, value_name = "FILE", env = "ZKR_CA")]
    ca: Option<PathBuf>,

    /// A PEM file of the client certificate, with its chain.
    #[arg(long, global = true, value_name = "FILE", env = "ZKR_CERT")]
    cert: Option<PathBuf>,

    /// A PEM file of the private key of --cert. Make it readable by its owner only.
    #[arg(long, global = true, value_name = "FILE", env = "ZKR_KEY")]
    key: Option<PathBuf>,
}

impl Connection {
    /// Opens a session to look at queues, or to change them.
    async fn open(&self) -> Result<Session, Failure> {
        self.warn_of_readers();
        self.open_with(None, self.options()?).await
    }

    /// Does this work in a session of its own.
    pub(crate) async fn within<T>(
        &self,
        work: impl AsyncFnOnce(&Session) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let session = self.open().await?;
        let done = work(&session).await;
        close(session).await;
        done
    }

    /// Opens a session whose contenders say that they are of this owner.
    ///
    /// The attempt ends after `limit`, if there is one. `retries` is for credentials that are refused
    /// after the first session.
    #[cfg(unix)]
    pub(crate) async fn open_for(
        &self,
        owner: String,
        limit: Option<Duration>,
        retries: bool,
    ) -> Result<Session, Failure> {
        self.warn_of_readers();
        let options = self.options()?.owner(owner);
        let options = options.retry_refused_credentials(retries);
        let session = self.open_with(limit, options).await?;
        if let Some(silence) = session.tolerated_silence().filter(|it| *it < SHORT_SILENCE) {
            warn(&format!(
                "a silence of the servers of {silence:?} can end the hold: set --tick to their \
                 tickTime, or raise --session-timeout; `zkr doctor` shows more"
            ));
        }
        Ok(session)
    }

    /// What the servers grant to a session that asks for this timeout, and the silence that the
    /// session tolerates with this tick.
    pub(crate) async fn granted(
        &self,
        asked: Duration,
        tick: Option<Duration>,
    ) -> Result<(Duration, Duration), Failure> {
        let mut options = self.options_without_tick()?.session_timeout(asked);
        if let Some(tick) = tick {
            options = options.tick(tick);
        }
        let session = self.open_with(None, options).await?;
        let granted = session.timeout().zip(session.tolerated_silence());
        close(session).await;
        Ok(granted.unwrap_or_default())
    }

    fn warn_of_readers(&self) {
        for secret in [&self.credentials_file, &self.key].into_iter().flatten() {
            credentials::warn_of_readers(secret);
        }
    }

    async fn open_with(
        &self,
        limit: Option<Duration>,
        options: ConnectOptions,
    ) -> Result<Session, Failure> {
        let patience = limit.map_or(self.connect_timeout, |limit| {
            limit.min(self.connect_timeout)
        });
        let options = options.connection_timeout(patience);
        Ok(Session::connect_with(&self.connect, options).await?)
    }

    fn options(&self) -> Result<ConnectOptions, Failure> {
        let options = self.options_without_tick()?;
        Ok(match self.tick {
            Some(tick) => options.tick(tick),
            None => options,
        })
    }

    fn options_without_tick(&self) -> Result<ConnectOptions, Failure> {
        let mut options = ConnectOptions::new().session_timeout(self.session_timeout);
        if let Some(tls) = self.tls()? {
            options = options.tls(tls);
        }
        for (scheme, credentials) in self.credentials()? {
            options = options.auth(&scheme, credentials);
        }
        Ok(options)
    }

    /// How connections are encrypted. `None` if they are not.
    pub(crate) fn tls(&self) -> Result<Option<TlsOptions>, Failure> {
        let files = [&self.ca, &self.cert, &self.key];
        if !self.tls && files.iter().any(|file| file.is_some()) {
            return Err(Failure::usage("--ca, --cert and --key need --tls"));
        }
        if !self.tls && self.connect.contains("tcp+tls://") {
            return Err(Failure::usage("--connect with tcp+tls:// needs --tls"));
        }
        let mut options = TlsOptions::new();
        if let Some(ca) = &self.ca {
            options = options.roots_from(ca);
        }
        options = match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => options.client_certificate_from(cert, key),
            (None, None) => options,
            _ => return Err(Failure::usage("--cert and --key need each other")),
        };
        Ok(self.tls.then_some(options))
    }

    /// The file of the certificates to trust.
    pub(crate) fn ca(&self) -> Option<&Path> {
        self.ca.as_deref()
    }

    pub(crate) fn credentials(&self) -> Result<Vec<(String, String)>, Failure> {
        credentials::read(self.credentials_file.as_deref())
    }

    /// The names in the credentials, without the secrets.
    pub(crate) fn identities(&self) -> Result<Vec<String>, Failure> {
        let credentials = self.credentials()?;
        let name = |(scheme, credentials): (String, String)| match credentials.split_once(':') {
            Some((user, _)) if scheme == "digest" => format!("{scheme}:{user}"),
            _ => scheme,
        };
        Ok(credentials.into_iter().map(name).collect())
    }

    /// How to run `zkr` for the same servers, as a shell takes it.
    ///
    /// `is_here` adds the options that name files of this machine. The variables that give an option
    /// may be set in another shell to other values.
    pub(crate) fn command(&self, is_here: bool) -> String {
        let mut command = format!("zkr --connect {}", quoted(&self.connect));
        if self.tls {
            command += " --tls";
        }
        let files = [
            ("credentials-file", &self.credentials_file),
            ("ca", &self.ca),
            ("cert", &self.cert),
            ("key", &self.key),
        ];
        let files = files.into_iter().filter(|_| is_here);
        for (option, file) in files.filter_map(|(option, file)| Some((option, file.as_ref()?))) {
            command += &format!(" --{option} {}", quoted(&file.to_string_lossy()));
        }
        command
    }

    /// The longest `--grace` that a lease of this length can always give.
    ///
    /// In a session with a short timeout and an unknown tick, a lease is renewed when a tenth of
    /// the timeout is left.
    #[cfg(unix)]
    pub(crate) fn longest_grace(&self, timeout: Duration) -> Duration {
        let is_raised = timeout > self.session_timeout;
        let has_room = match self.tick {
            Some(tick) => tick <= timeout / 4,
            None => !is_raised && timeout >= Duration::from_secs(9),
        };
        if has_room { timeout / 5 } else { timeout / 20 }
    }
}

/// Closes the session, and does not wait for long if no server answers.
pub(crate) async fn close(session: Session) {
    // If the time is over, the servers end the session by its timeout.
    let _ = tokio::time::timeout(GOODBYE, session.close()).await;
}
