//! The options of a connection.

use std::fmt;
use std::time::Duration;

use crate::server::scope::Scope;

/// ZooKeeper's `jute.maxbuffer` without a configuration, in bytes.
pub(crate) const DEFAULT_MAXBUFFER: usize = 0xf_ffff;

/// The shortest session timeout that leaves a lease any time.
pub(crate) const SHORTEST_TIMEOUT: Duration = Duration::from_millis(100);

/// The options of a session: timeouts, the servers' tick, the owner, credentials and TLS.
///
/// Whatever opens the session uses each option, or refuses it at once with
/// [`InvalidInput`](crate::InvalidInput): a simulated ensemble refuses TLS, and a client that you have connected
/// refuses the session timeout, credentials and TLS. If no session timeout is set, that of the
/// simulation counts for a simulated ensemble.
///
/// ```
/// use std::time::Duration;
/// use zookeeper_recipes_core::ConnectOptions;
///
/// let options = ConnectOptions::new()
///     .session_timeout(Duration::from_secs(15))
///     .connection_timeout(Duration::from_secs(5))
///     .auth("digest", "service:secret");
/// ```
#[derive(Clone)]
#[must_use]
pub struct ConnectOptions {
    pub(crate) session_timeout: Option<Duration>,
    pub(crate) connection_timeout: Duration,
    pub(crate) tick: Option<Duration>,
    pub(crate) owner: Option<String>,
    pub(crate) jute_maxbuffer: usize,
    pub(crate) retries_refused_credentials: bool,
    pub(crate) auth: Vec<(String, Vec<u8>)>,
    pub(crate) is_encrypted: bool,
    /// True if the client shows a certificate.
    shows_certificate: bool,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<zookeeper_recipes_connection::TlsOptions>,
}

impl ConnectOptions {
    /// The default: both timeouts are 10 seconds, and there are no credentials.
    pub fn new() -> ConnectOptions {
        ConnectOptions {
            session_timeout: None,
            connection_timeout: Duration::from_secs(10),
            tick: None,
            owner: None,
            jute_maxbuffer: DEFAULT_MAXBUFFER,
            retries_refused_credentials: false,
            auth: Vec::new(),
            is_encrypted: false,
            shows_certificate: false,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// The time after which the server expires the session of a silent process.
    ///
    /// The server may change this value: by default, the server allows 2 to 20 of its ticks. If the
    /// timeout is short, a dead holder's lock goes to the next contender soon. If the timeout is
    /// long, a holder keeps its lock on a slow network or a busy machine.
    pub fn session_timeout(mut self, timeout: Duration) -> ConnectOptions {
        self.session_timeout = Some(timeout);
        self
    }

    /// The time limit of [`Session::connect`](crate::Session::connect).
    ///
    /// Until then, it retries even if all servers refuse connections, because they may be starting.
    /// `Duration::MAX` is no limit.
    pub fn connection_timeout(mut self, timeout: Duration) -> ConnectOptions {
        self.connection_timeout = timeout;
        self
    }

    /// The `tickTime` of the servers.
    ///
    /// A hold is lost a margin before the server could expire its session. A longer tick needs a
    /// longer margin: see [`docs::lease`](crate::docs::lease).
    ///
    /// If this is not set, the session assumes a tick of three seconds, which is ZooKeeper's if its
    /// configuration names none, or half of the session timeout if that is shorter. Set it in these
    /// three cases:
    ///
    /// * The servers' tick is longer than three seconds. The default margin may not be long enough.
    /// * The ensemble has observers behind observer masters (`observerMasterPort`), and the session
    ///   timeout is below four ticks. The default wait may not be long enough.
    /// * The servers' tick is below three tenths of the session timeout. Holds then survive longer
    ///   disturbances: [`docs::tick`](crate::docs::tick) has a table.
    ///
    /// If the members differ, set the longest tick. If a member's tick is longer than this, two
    /// processes can hold at the same time.
    ///
    /// No session can be opened with a tick above half of the session timeout that the servers
    /// grant.
    pub fn tick(mut self, tick: Duration) -> ConnectOptions {
        self.tick = Some(tick);
        self
    }

    /// The name of the service, which others read in the queue: `billing`.
    ///
    /// The data of each contender's znode says who it is: `billing@host:pid`, as
    /// [`Session::owner`](crate::Session::owner) returns it. By default the service is the
    /// name of the program. At most 200 bytes, without control characters. A recipe whose options
    /// set the data writes that data, and an election writes the candidate's id.
    ///
    /// Everyone who may read the znode can read the name of the host.
    pub fn owner(mut self, service: impl Into<String>) -> ConnectOptions {
        self.owner = Some(service.into());
        self
    }

    /// The `jute.maxbuffer` of the servers: the largest request that they accept, in bytes.
    ///
    /// A server closes the connection at a longer request. So a request that may be longer is not
    /// sent: [`Error::InvalidInput`](crate::Error::InvalidInput) names its size, which is an upper
    /// bound. By default 1,048,575, as in ZooKeeper without a configuration. If the servers differ,
    /// set the least of their values. From 262,144 to 2,147,483,647.
    ///
    /// It also limits the paths of all ephemeral znodes of a session together:
    /// [`Session::ephemeral_bytes_left`](crate::Session::ephemeral_bytes_left).
    pub fn jute_maxbuffer(mut self, bytes: usize) -> ConnectOptions {
        self.jute_maxbuffer = bytes;
        self
    }

    /// Adds credentials, for example `("digest", "user:password")`.
    ///
    /// The scheme `sasl` authenticates the user by SASL's mechanism DIGEST-MD5, over each connection
    /// and before all requests, as servers with `sessionRequireClientSASLAuth` demand. The password is
    /// not sent, and the server has to know it, too. This does not encrypt the connection: use TLS.
    ///
    /// The method may be called several times. When the session is opened, a second user of `sasl`
    /// is refused, and so are credentials of these two schemes without a colon.
    pub fn auth(mut self, scheme: &str, credentials: impl AsRef<[u8]>) -> ConnectOptions {
        let credentials = credentials.as_ref().to_owned();
        self.auth.push((scheme.to_owned(), credentials));
        self
    }

    /// Keeps opening sessions while the servers refuse the credentials. By default it does not.
    ///
    /// A server refuses the credentials of a scheme that it does not know, for example if it was
    /// restarted with a wrong configuration. By default the [`Session`](crate::Session) is over then
    /// ([`SessionEnd::AuthenticationFailed`](crate::SessionEnd::AuthenticationFailed)), and its
    /// process has to open another one. With `true` it retries, with pauses of up to five seconds, as
    /// if no server answered.
    ///
    /// [`Session::connect_with`](crate::Session::connect_with) still fails at once if the first
    /// session is refused: the credentials are probably wrong.
    /// [`connect_in_background`](crate::Session::connect_in_background) retries then, too.
    pub fn retry_refused_credentials(mut self, retries: bool) -> ConnectOptions {
        self.retries_refused_credentials = retries;
        self
    }

    /// Encrypts the connections: each host of the connect string is connected to by TLS.
    ///
    /// This needs the feature `tls`, as does [`TlsOptions`](crate::TlsOptions). An Apache server
    /// takes such connections at its `secureClientPort`, with the Netty connection factory:
    /// [`docs::encryption`](crate::docs::encryption) has the server's side.
    ///
    /// `tcp+tls://host:port` says the same for one host, and needs these options. A host that is
    /// given as `tcp://host:port`, without encryption, is refused as
    /// [`InvalidInput`](crate::InvalidInput). So are a file that cannot be read or used, and a host
    /// name that no certificate can be valid for. A server that does not answer by TLS, or whose
    /// certificate is not valid for its name in the connect string, is an error: nothing is sent to
    /// it but the messages of the TLS handshake.
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub fn tls(mut self, options: zookeeper_recipes_connection::TlsOptions) -> ConnectOptions {
        self.is_encrypted = true;
        self.shows_certificate = options.has_client_certificate();
        self.tls = Some(options);
        self
    }

    /// The session timeout that is set, for an [`Ensemble`](crate::Ensemble).
    pub fn asked_session_timeout(&self) -> Option<Duration> {
        self.session_timeout
    }

    /// The scope of a session with this chroot, for an [`Ensemble`](crate::Ensemble).
    pub fn scope(&self, chroot: &str) -> Scope {
        let is_anonymous = self.auth.is_empty() && !self.shows_certificate;
        Scope::new(chroot, self.jute_maxbuffer, is_anonymous)
    }
}

impl Default for ConnectOptions {
    fn default() -> ConnectOptions {
        ConnectOptions::new()
    }
}

/// Leaves the credentials out.
impl fmt::Debug for ConnectOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("ConnectOptions")
            .field("session_timeout", &self.session_timeout)
            .field("connection_timeout", &self.connection_timeout)
            .field("tick", &self.tick)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}
