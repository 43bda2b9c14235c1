//! The certificates of hosts, as the supervisor has told them.
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use edge_front::Certificate;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The protocol by which ACME servers ask whether a host leads here (TLS-ALPN-01, RFC 8737).
pub const ACME: &[u8] = b"acme-tls/1";

/// Certificates by their hosts, in lower case.
#[derive(Default)]
pub struct Certificates(HashMap<Box<str>, Arc<CertifiedKey>>);

/// What a client is shown: ACME servers, who offer their protocol and no other, get answers to their challenges, and
/// nobody else does.
pub struct ServedCertificates {
    pub certificates: Certificates,
    pub challenges: Arc<RwLock<Certificates>>,
}

impl Certificates {
    /// Also returns what is wrong with those that cannot be read: their hosts are served without.
    pub fn read(certificates: Vec<Certificate>) -> (Self, Vec<String>) {
        let mut problems = Vec::new();
        let mut by_host = HashMap::with_capacity(certificates.len());
        for Certificate { host, chain, key } in certificates {
            match read(&chain, &key) {
                Ok(certified) => {
                    by_host.insert(host.to_ascii_lowercase().into(), Arc::new(certified));
                }
                Err(problem) => problems.push(format!("{host}: {problem}")),
            }
        }
        (Self(by_host), problems)
    }
}

fn read(chain: &str, key: &str) -> Result<CertifiedKey, String> {
    let chain = CertificateDer::pem_slice_iter(chain.as_bytes())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("the certificate cannot be read: {error}"))?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|_| "the key cannot be read".to_owned())?;
    let key = any_supported_type(&key).map_err(|_| "keys of this kind are not supported".to_owned())?;
    Ok(CertifiedKey::new(chain, key))
}

impl ResolvesServerCert for ServedCertificates {
    /// A client that asks for no host, or for one without a certificate, is refused: any other certificate would be
    /// wrong.
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        // rustls gives names in lower case.
        let host = hello.server_name()?;
        if hello.alpn().is_some_and(|offered| offered.eq([ACME])) {
            let challenges = self.challenges.read().unwrap_or_else(PoisonError::into_inner);
            return challenges.0.get(host).cloned();
        }
        self.certificates.0.get(host).cloned()
    }
}

/// Shows none of the keys.
impl fmt::Debug for ServedCertificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shown")
    }
}
