//! The few facts of a server's certificate that `rustls` does not tell: https://www.rfc-editor.org/rfc/rfc5280
use std::net::IpAddr;

use x509_cert::certificate::{CertificateInner, Raw};
use x509_cert::der::Decode;
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::oid::db::rfc5280::ID_CE_SUBJECT_ALT_NAME;

/// Any serial number will do: some are longer than the RFC allows.
pub struct Certificate(CertificateInner<Raw>);

impl Certificate {
    /// `None`: it is garbled.
    pub fn read(der: &[u8]) -> Option<Self> {
        CertificateInner::from_der(der).ok().map(Self)
    }

    /// Seconds since 1970, as below.
    pub fn not_before(&self) -> u64 {
        self.0.tbs_certificate().validity().not_before.to_unix_duration().as_secs()
    }

    pub fn not_after(&self) -> u64 {
        self.0.tbs_certificate().validity().not_after.to_unix_duration().as_secs()
    }

    pub fn is_self_issued(&self) -> bool {
        let certified = self.0.tbs_certificate();
        certified.issuer() == certified.subject()
    }

    /// Whether it was issued for a host that it names only as its subject, as certificates did before they had
    /// alternative names. Those that have them are left to `rustls`.
    pub fn has_common_name(&self, host: &str) -> bool {
        let certified = self.0.tbs_certificate();
        let mut extensions = certified.extensions().into_iter().flatten();
        if host.parse::<IpAddr>().is_ok() || extensions.any(|one| one.extn_id == ID_CE_SUBJECT_ALT_NAME) {
            return false;
        }
        let mut attributes = certified.subject().iter();
        attributes.any(|attribute| attribute.oid == COMMON_NAME && matches(attribute.value.value(), host))
    }
}

/// Whether a name, whose first label may be `*`, is that of a host.
fn matches(name: &[u8], host: &str) -> bool {
    let host = host.trim_end_matches('.').as_bytes();
    if name.eq_ignore_ascii_case(host) {
        return true;
    }
    let parent = host.iter().position(|&byte| byte == b'.').map(|dot| &host[dot..]);
    match (name.strip_prefix(b"*"), parent) {
        // Not all of a top level domain.
        (Some(rest), Some(parent)) => parent[1..].contains(&b'.') && rest.eq_ignore_ascii_case(parent),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_has_its_times_and_names() {
        let der = include_bytes!("../../../fuzz-seeds/postgres-certificates/own");
        let certificate = Certificate::read(der).unwrap();
        assert_eq!((certificate.not_before(), certificate.not_after()), (1_795_951_795, 1_796_729_395));
        assert!(certificate.is_self_issued() && certificate.has_common_name("db.example.com"));
        assert!(!certificate.has_common_name("db.example.org"));
    }

    #[test]
    fn names_fit_in_any_case_and_a_wildcard_stands_for_one_label() {
        assert!(matches(b"DB.example.com", "db.example.com"));
        assert!(matches(b"*.example.com", "db.example.com"));
        assert!(!matches(b"*.example.com", "a.db.example.com"));
        assert!(!matches(b"*.com", "example.com"));
        assert!(!matches(b"", "db"));
    }

    #[test]
    fn does_not_read_garbage() {
        assert!(Certificate::read(b"").is_none());
        assert!(Certificate::read(b"\x30\x84\xff\xff\xff\xff").is_none());
        assert!(Certificate::read(&[0x30, 0x80, 0, 0]).is_none());
    }
}
