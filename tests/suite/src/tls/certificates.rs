//! Certificates of the tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    date_time_ymd,
};
use tempfile::TempDir;
use tokio_rustls::rustls::crypto::ring::sign::any_supported_type;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{
    ALL_VERSIONS, RootCertStore, ServerConfig, SupportedProtocolVersion, crypto,
};
use zookeeper_recipes_core::TlsOptions;

/// A certificate and its key, in PEM.
#[derive(Debug)]
pub struct Issued {
    pub certificate: String,
    pub key: String,
}

#[derive(Debug)]
pub struct Authority {
    /// Its own certificate, in PEM.
    pub root: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// An authority of this name, with a key of its own.
    pub fn new(name: &str) -> Authority {
        let mut params = named(&[], name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let root = params.self_signed(&key).expect("a root").pem();
        let issuer = Issuer::new(params, key);
        Authority { root, issuer }
    }

    /// A certificate for these names and addresses.
    pub fn issue(&self, subjects: &[&str]) -> Issued {
        self.sign(named(subjects, "zookeeper"))
    }

    pub fn issue_expired(&self, subjects: &[&str]) -> Issued {
        self.issue_in(2001, subjects)
    }

    /// A certificate that is not valid yet.
    pub fn issue_early(&self, subjects: &[&str]) -> Issued {
        self.issue_in(2901, subjects)
    }

    fn issue_in(&self, year: i32, subjects: &[&str]) -> Issued {
        let mut params = named(subjects, "zookeeper");
        params.not_before = date_time_ymd(year, 1, 1);
        params.not_after = date_time_ymd(year + 1, 1, 1);
        self.sign(params)
    }

    /// A certificate that is good for a client and not for a server.
    pub fn issue_for_a_client(&self, subjects: &[&str]) -> Issued {
        let mut params = named(subjects, "zookeeper");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    /// A certificate that a service issues, to which this authority has issued a certificate of
    /// its own. It shows both.
    pub fn issue_by_a_service(&self, subjects: &[&str]) -> Issued {
        let own = self.issue(&["service"]);
        let key = KeyPair::from_pem(&own.key).expect("a key");
        let service = Authority {
            issuer: Issuer::new(named(&["service"], "zookeeper"), key),
            root: own.certificate,
        };
        let issued = service.issue(subjects);
        Issued {
            certificate: issued.certificate + &service.root,
            key: issued.key,
        }
    }

    fn sign(&self, mut params: CertificateParams) -> Issued {
        if params.extended_key_usages.is_empty() {
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ];
        }
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        Issued {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }
}

fn named(subjects: &[&str], name: &str) -> CertificateParams {
    let subjects: Vec<String> = subjects.iter().map(|&it| it.to_owned()).collect();
    let mut params = CertificateParams::new(subjects).expect("good names");
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

impl Issued {
    pub fn by_itself(subjects: &[&str]) -> Issued {
        let key = KeyPair::generate().expect("a key");
        let certificate = named(subjects, "zookeeper").self_signed(&key);
        Issued {
            certificate: certificate.expect("a certificate").pem(),
            key: key.serialize_pem(),
        }
    }

    pub fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).expect("a certificate")
    }

    /// A server that shows this certificate. With `clients` it requires a certificate of theirs.
    pub fn server(&self, clients: Option<&Authority>) -> Arc<ServerConfig> {
        self.server_of(ALL_VERSIONS, clients)
    }

    /// The same, for these versions of TLS.
    pub fn server_of(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        clients: Option<&Authority>,
    ) -> Arc<ServerConfig> {
        let provider = Arc::new(crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider.clone());
        let builder = builder.with_protocol_versions(versions);
        let builder = builder.expect("known versions");
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(clients) => {
                let mut roots = RootCertStore::empty();
                let root = CertificateDer::from_pem_slice(clients.root.as_bytes());
                roots.add(root.expect("a root")).expect("a root");
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
                builder.with_client_cert_verifier(verifier.build().expect("a verifier"))
            }
        };
        // It is not checked that the certificate is the key's.
        let chain = CertificateDer::pem_slice_iter(self.certificate.as_bytes());
        let chain = chain.collect::<Result<_, _>>().expect("certificates");
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).expect("a key");
        let key = any_supported_type(&key).expect("a key");
        let shown = SingleCertAndKey::from(CertifiedKey::new(chain, key));
        Arc::new(builder.with_cert_resolver(Arc::new(shown)))
    }
}

pub fn trusting(authority: &Authority) -> TlsOptions {
    TlsOptions::new().roots(authority.root.as_bytes())
}

/// A directory with the files of a client: `ca.pem`, `cert.pem` and `key.pem`.
#[derive(Debug)]
pub struct Files {
    directory: TempDir,
}

impl Files {
    /// The root of this authority, and a client's certificate and key.
    pub fn new(authority: &Authority, client: &Issued) -> Files {
        let directory = tempfile::tempdir().expect("a directory");
        let files = Files { directory };
        files.replace(authority, client);
        files
    }

    /// Writes other files in their place.
    pub fn replace(&self, authority: &Authority, client: &Issued) {
        self.write("ca.pem", &authority.root);
        self.write("cert.pem", &client.certificate);
        self.write("key.pem", &client.key);
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.directory.path().join(name);
        fs::write(&file, text).expect("it is written");
        file
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The options that read these files.
    pub fn options(&self) -> TlsOptions {
        let file = |name| self.path().join(name);
        TlsOptions::new()
            .roots_from(file("ca.pem"))
            .client_certificate_from(file("cert.pem"), file("key.pem"))
    }
}
