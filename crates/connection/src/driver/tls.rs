//! Encrypted connections.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_rustls::{TlsConnector, rustls};

use crate::error::DisconnectReason;
use crate::session::host::Host;

/// How connections are encrypted, and which certificates are trusted and shown.
///
/// A server's certificate must be valid for the name or the address in the connect string, and not
/// for the address that the name has. There is no way to turn this off.
///
/// Files are read anew for each connection, so that certificates can be replaced while a session is
/// open: the session keeps its connection, and its next one uses the new files. If a file cannot be
/// used then, that is an error of this attempt to connect, and the next attempt reads it again.
///
/// A private key must not need a passphrase.
///
/// ```no_run
/// # use zookeeper_recipes_connection::TlsOptions;
/// let tls = TlsOptions::new()
///     .roots_from("/etc/zookeeper/ca.pem")
///     .client_certificate_from("/etc/service/cert.pem", "/etc/service/key.pem");
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct TlsOptions {
    /// `None` for the certificates that the system trusts.
    roots: Option<Pem>,
    identity: Option<(Pem, Pem)>,
}

/// Where certificates or a key stand, in PEM.
#[derive(Clone)]
enum Pem {
    File(PathBuf),
    Bytes(Arc<[u8]>),
}

impl TlsOptions {
    /// Trusts the certificates that the system trusts, and shows none.
    pub fn new() -> TlsOptions {
        TlsOptions::default()
    }

    /// Trusts the certificates in a file of PEM, and no others.
    pub fn roots_from(mut self, file: impl Into<PathBuf>) -> TlsOptions {
        self.roots = Some(Pem::File(file.into()));
        self
    }

    /// Trusts these certificates in PEM, and no others.
    pub fn roots(mut self, pem: &[u8]) -> TlsOptions {
        self.roots = Some(Pem::Bytes(pem.into()));
        self
    }

    /// Shows the certificate chain and its private key in these files to servers that ask for one.
    ///
    /// Both are in PEM and may be one file. The chain begins with the certificate of the key.
    pub fn client_certificate_from(
        mut self,
        certificates: impl Into<PathBuf>,
        key: impl Into<PathBuf>,
    ) -> TlsOptions {
        self.identity = Some((Pem::File(certificates.into()), Pem::File(key.into())));
        self
    }

    /// Shows this certificate chain and its private key in PEM to servers that ask for one.
    pub fn client_certificate(mut self, certificates: &[u8], key: &[u8]) -> TlsOptions {
        let identity = (Pem::Bytes(certificates.into()), Pem::Bytes(key.into()));
        self.identity = Some(identity);
        self
    }

    /// Reads the certificates and the key, and checks that they fit together.
    ///
    /// # Errors
    ///
    /// An error that names the file and its problem.
    pub fn check(&self) -> io::Result<()> {
        self.client_config().map(drop)
    }

    /// Checks that a certificate can be valid for the name of this host.
    ///
    /// # Errors
    ///
    /// An error that names the host, such as `zk..a`.
    pub fn check_host(&self, host: &Host) -> io::Result<()> {
        server_name(&host.name).map(drop)
    }

    /// True if the session shows a certificate, which is an identity at the server.
    pub fn has_client_certificate(&self) -> bool {
        self.identity.is_some()
    }

    fn client_config(&self) -> io::Result<ClientConfig> {
        let builder =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(io::Error::other)?;
        let builder = builder.with_root_certificates(self.trusted()?);
        let Some((certificates, key)) = &self.identity else {
            return Ok(builder.with_no_client_auth());
        };
        let chain = certificates.certificates()?;
        let config = builder.with_client_auth_cert(chain, key.key()?);
        config.map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => {
                key.problem(&"the private key is not the certificate's")
            }
            rustls::Error::InvalidCertificate(_) => certificates.problem(&error),
            error => key.problem(&error),
        })
    }

    fn trusted(&self) -> io::Result<RootCertStore> {
        let mut store = RootCertStore::empty();
        let certificates = match &self.roots {
            Some(pem) => pem.certificates()?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        for certificate in certificates {
            let added = store.add(certificate);
            if let (Err(error), Some(pem)) = (added, &self.roots) {
                return Err(pem.problem(&error));
            }
        }
        match store.is_empty() {
            true => Err(io::Error::other(
                "the system trusts no certificate: name a file of roots",
            )),
            false => Ok(store),
        }
    }
}

/// Leaves the key out.
impl fmt::Debug for TlsOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("TlsOptions")
            .field("has_client_certificate", &self.has_client_certificate())
            .finish_non_exhaustive()
    }
}

impl Pem {
    fn bytes(&self) -> io::Result<Vec<u8>> {
        match self {
            Pem::File(file) => std::fs::read(file).map_err(|error| self.problem(&error)),
            Pem::Bytes(bytes) => Ok(bytes.to_vec()),
        }
    }

    fn certificates(&self) -> io::Result<Vec<CertificateDer<'static>>> {
        let bytes = self.bytes()?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        let certificates = certificates.map_err(|error| self.problem(&error))?;
        match certificates.is_empty() {
            true => Err(self.problem(&"no certificate in PEM")),
            false => Ok(certificates),
        }
    }

    fn key(&self) -> io::Result<PrivateKeyDer<'static>> {
        let key = PrivateKeyDer::from_pem_slice(&self.bytes()?);
        key.map_err(|error| match error {
            pem::Error::NoItemsFound => self.problem(&"no private key in PEM without a passphrase"),
            error => self.problem(&error),
        })
    }

    fn problem(&self, problem: &dyn fmt::Display) -> io::Error {
        io::Error::other(match self {
            Pem::File(file) => format!("{}: {problem}", file.display()),
            Pem::Bytes(_) => problem.to_string(),
        })
    }
}

/// The name that a certificate has to be valid for.
///
/// # Errors
///
/// If no certificate can be valid for the name, such as `zk..a`.
fn server_name(host: &str) -> io::Result<ServerName<'static>> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|_| io::Error::other(format!("no certificate can be valid for the host {host}")))
}

/// Connects to a host over TLS, until `until` at the latest.
pub(crate) async fn connect(
    options: TlsOptions,
    host: &str,
    stream: impl Future<Output = Result<TcpStream, DisconnectReason>>,
    until: Instant,
) -> Result<TlsStream<TcpStream>, DisconnectReason> {
    let name = server_name(host).map_err(tls)?;
    // The files are read anew, on a thread that may block.
    let config = spawn_blocking(move || options.client_config()).await;
    let config = config.map_err(|error| tls(error.into()))?.map_err(tls)?;
    let connector = TlsConnector::from(Arc::new(config));
    match timeout_at(until, connector.connect(name, stream.await?)).await {
        Ok(shaken) => shaken.map_err(|error| tls(explained(error))),
        Err(_) => Err(tls(io::Error::new(
            ErrorKind::TimedOut,
            "the server does not answer the handshake: does this port speak TLS?",
        ))),
    }
}

/// Why an established connection broke.
///
/// A server may refuse the client's certificate after the handshake.
pub(crate) fn cause(error: io::Error) -> DisconnectReason {
    match rustls_error(&error) {
        Some(rustls::Error::AlertReceived(_)) => tls(explained(error)),
        Some(_) => tls(advised(
            "what came is not the server's, or the server breaks the rules of TLS",
            &error,
        )),
        None => error.into(),
    }
}

fn rustls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

/// An error of TLS in words that say what to do.
fn explained(error: io::Error) -> io::Error {
    use rustls::{AlertDescription as Alert, CertificateError, Error};

    let advice = match (rustls_error(&error), error.kind()) {
        (Some(Error::InvalidMessage(_)), _) => "the port does not speak TLS",
        (None, ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => {
            "the server closed the connection in the handshake: is maxClientCnxns of the server \
             reached for the address of this client (60 connections by default), does this port \
             speak TLS, and does the server accept the client's certificate?"
        }
        (Some(Error::InvalidCertificate(problem)), _) => match problem {
            CertificateError::UnknownIssuer => {
                "no trusted root has issued the server's certificate"
            }
            // The trusted root of this name has another key, or the server does not have the key.
            CertificateError::BadSignature => {
                "no trusted root has issued the server's certificate, or it is not the server's own"
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                "the server's certificate is not valid yet: is the clock right?"
            }
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                "the server's certificate has expired"
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                "the server's certificate is for other names"
            }
            _ => "the server's certificate is not accepted",
        },
        (
            Some(
                Error::PeerIncompatible(_)
                | Error::AlertReceived(Alert::ProtocolVersion | Alert::InsufficientSecurity),
            ),
            _,
        ) => "the server offers nothing that this client accepts of TLS 1.2 and 1.3",
        // Some servers have no other word for a missing certificate.
        (Some(Error::AlertReceived(Alert::HandshakeFailure)), _) => {
            "the server accepts no cipher of this client, or requires a client certificate"
        }
        (Some(Error::AlertReceived(Alert::CertificateRequired)), _) => {
            "the server requires a client certificate"
        }
        (
            Some(Error::AlertReceived(
                Alert::BadCertificate
                | Alert::UnsupportedCertificate
                | Alert::CertificateRevoked
                | Alert::CertificateExpired
                | Alert::CertificateUnknown
                | Alert::UnknownCA
                | Alert::AccessDenied,
            )),
            _,
        ) => "the server does not accept the client's certificate, or requires one",
        _ => return error,
    };
    advised(advice, &error)
}

fn advised(advice: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{advice} ({error})"))
}

fn tls(error: io::Error) -> DisconnectReason {
    DisconnectReason::Tls(Arc::new(error))
}
