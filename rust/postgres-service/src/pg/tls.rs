//! TLS as each `ssl_mode` asks for it, in the way `libpq` defines them.
use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};

use super::certificate::Certificate;
use super::failure::Failure;
use super::target::{Config, SslMode};

/// Whether and how a connection is encrypted.
#[derive(Clone)]
pub enum Encryption {
    None,
    Tls(Arc<ClientConfig>),
}

/// The ways to try, in order.
pub fn encryptions(config: &Config) -> Vec<Encryption> {
    let pem = config.ssl_root_cert.as_deref().filter(|pem| !pem.is_empty());
    let tls = |checks| Encryption::Tls(client_config(&config.host, pem, checks));
    match config.ssl_mode {
        SslMode::Disable => vec![Encryption::None],
        SslMode::Prefer => vec![tls(Checks::Nothing), Encryption::None],
        // As in libpq, a certificate in the config is used.
        SslMode::Require if pem.is_none() => vec![tls(Checks::Nothing)],
        SslMode::Require | SslMode::VerifyCa => vec![tls(Checks::Chain)],
        SslMode::VerifyFull => vec![tls(Checks::ChainAndName)],
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Checks {
    Nothing,
    Chain,
    ChainAndName,
}

fn client_config(host: &str, pem: Option<&str>, checks: Checks) -> Arc<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let (roots, trusted) = match checks {
        Checks::Nothing => (RootCertStore::empty(), Vec::new()),
        Checks::Chain | Checks::ChainAndName => roots(pem),
    };
    let verifier = Verifier { host: host.to_owned(), checks, roots, trusted, provider: provider.clone() };
    let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(rustls::DEFAULT_VERSIONS);
    let builder = builder.expect("ring has the ciphers of both versions").dangerous();
    Arc::new(builder.with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}

/// The given certificates, or those of the public authorities and of the operator, as Node takes them: those of the
/// machine with `--use-system-ca` or `--use-openssl-ca`. What cannot be read is not trusted.
fn roots(pem: Option<&str>) -> (RootCertStore, Vec<CertificateDer<'static>>) {
    let mut roots = RootCertStore::empty();
    let trusted: Vec<_> = match pem {
        Some(pem) => CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok).collect(),
        None => {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
            if std::env::var("NODE_OPTIONS").is_ok_and(|options| options.contains("-ca")) {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            let extra = std::env::var_os("NODE_EXTRA_CA_CERTS").and_then(|path| std::fs::read(path).ok());
            CertificateDer::pem_slice_iter(&extra.unwrap_or_default()).filter_map(Result::ok).collect()
        }
    };
    roots.add_parsable_certificates(trusted.iter().cloned());
    (roots, trusted)
}

/// The reason of a failed handshake.
pub fn handshake_failure(error: std::io::Error) -> Failure {
    match error.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(Error::InvalidCertificate(problem)) => Failure::Certificate(describe(problem)),
        Some(other) => Failure::Other(other.to_string()),
        None => error.into(),
    }
}

/// What is wrong with the certificate, with the code that Node has for it.
fn describe(problem: &CertificateError) -> String {
    match problem {
        CertificateError::Other(OtherError(problem)) => problem.to_string(),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => EXPIRED.to_owned(),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => NOT_YET_VALID.to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "it was issued for another host name (ERR_TLS_CERT_ALTNAME_INVALID)".to_owned()
        }
        CertificateError::BadEncoding => "it is garbled, or of version 1 of X.509: issue it with extensions".to_owned(),
        CertificateError::UnknownIssuer | CertificateError::BadSignature => UNTRUSTED.to_owned(),
        other => other.to_string(),
    }
}

const EXPIRED: &str = "it has expired (CERT_HAS_EXPIRED)";
const NOT_YET_VALID: &str = "it is not valid yet (CERT_NOT_YET_VALID)";
const UNTRUSTED: &str = "it was signed by an issuer that is not trusted here (UNABLE_TO_VERIFY_LEAF_SIGNATURE)";
const SELF_SIGNED: &str = "it is self-signed (DEPTH_ZERO_SELF_SIGNED_CERT)";
const SELF_SIGNED_CHAIN: &str =
    "its chain ends in a self-signed certificate that is not trusted here (SELF_SIGNED_CERT_IN_CHAIN)";
const UNTRUSTED_CHAIN: &str = "its issuer is not trusted here (UNABLE_TO_GET_ISSUER_CERT_LOCALLY)";

/// Why a certificate was not accepted.
#[derive(Debug)]
struct Problem(&'static str);

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for Problem {}

fn problem(text: &'static str) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Problem(text)))))
}

#[derive(Debug)]
struct Verifier {
    host: String,
    checks: Checks,
    roots: RootCertStore,
    /// The certificates of the config or the operator, as they are.
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl Verifier {
    fn check_chain(&self, end: &CertificateDer<'_>, others: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        let facts = Certificate::read(end);
        let is_self_issued = facts.as_ref().is_some_and(Certificate::is_self_issued);
        if let Some(facts) = facts.filter(|_| is_self_issued && self.trusted.contains(end)) {
            // The server's own certificate, which is not that of an authority for `rustls`.
            return match now.as_secs() {
                now if now < facts.not_before() => Err(problem(NOT_YET_VALID)),
                now if now > facts.not_after() => Err(problem(EXPIRED)),
                _ => Ok(()),
            };
        }
        let algorithms = self.provider.signature_verification_algorithms.all;
        let parsed = ParsedCertificate::try_from(end)?;
        verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, now, algorithms).map_err(|error| {
            use CertificateError::{BadSignature, UnknownIssuer};
            let ends_in_itself = || {
                let last = others.last().and_then(|last| Certificate::read(last));
                last.is_some_and(|last| last.is_self_issued())
            };
            match error {
                _ if is_self_issued => problem(SELF_SIGNED),
                Error::InvalidCertificate(UnknownIssuer | BadSignature) if others.is_empty() => problem(UNTRUSTED),
                Error::InvalidCertificate(UnknownIssuer | BadSignature) if ends_in_itself() => {
                    problem(SELF_SIGNED_CHAIN)
                }
                Error::InvalidCertificate(UnknownIssuer | BadSignature) => problem(UNTRUSTED_CHAIN),
                error => error,
            }
        })
    }

    /// Where any certificate will do, whether the server has its key proves nothing.
    fn check_signature(
        &self,
        verify: impl FnOnce(&WebPkiSupportedAlgorithms) -> Result<HandshakeSignatureValid, Error>,
    ) -> Result<HandshakeSignatureValid, Error> {
        match self.checks {
            Checks::Nothing => Ok(HandshakeSignatureValid::assertion()),
            _ => verify(&self.provider.signature_verification_algorithms),
        }
    }

    fn check_name(&self, end: &CertificateDer<'_>, name: &ServerName<'_>) -> Result<(), Error> {
        if Certificate::read(end).is_some_and(|facts| facts.has_common_name(&self.host)) {
            return Ok(());
        }
        verify_server_name(&ParsedCertificate::try_from(end)?, name)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.checks != Checks::Nothing {
            self.check_chain(end_entity, intermediates, now)?;
        }
        if self.checks == Checks::ChainAndName {
            self.check_name(end_entity, server_name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(|algorithms| verify_tls12_signature(message, cert, dss, algorithms))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(|algorithms| verify_tls13_signature(message, cert, dss, algorithms))
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
