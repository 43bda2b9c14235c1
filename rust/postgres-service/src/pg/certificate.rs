//! The few facts of a server's certificate that `rustls` does not tell: https://www.rfc-editor.org/rfc/rfc5280
use std::net::IpAddr;

const INTEGER: u8 = 0x02;
const OBJECT_ID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
const COMMON_NAME: &[u8] = &[0x55, 4, 3];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

pub struct Certificate<'a> {
    issuer: &'a [u8],
    subject: &'a [u8],
    /// Seconds since 1970.
    pub not_before: i64,
    pub not_after: i64,
    extensions: &'a [u8],
}

impl<'a> Certificate<'a> {
    /// `None`: it is garbled.
    pub fn read(der: &'a [u8]) -> Option<Self> {
        let mut tbs = take(&mut take(&mut { der }, SEQUENCE)?, SEQUENCE)?;
        if tbs.first() == Some(&VERSION) {
            take(&mut tbs, VERSION)?;
        }
        take(&mut tbs, INTEGER)?;
        take(&mut tbs, SEQUENCE)?;
        let issuer = take(&mut tbs, SEQUENCE)?;
        let mut validity = take(&mut tbs, SEQUENCE)?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = take(&mut tbs, SEQUENCE)?;
        take(&mut tbs, SEQUENCE)?;
        let mut extensions = &[][..];
        while let Some((tag, content)) = next(&mut tbs) {
            if tag == EXTENSIONS {
                extensions = take(&mut { content }, SEQUENCE)?;
            }
        }
        Some(Self { issuer, subject, not_before, not_after, extensions })
    }

    pub fn is_self_issued(&self) -> bool {
        self.issuer == self.subject
    }

    /// Whether it was issued for a host that it names only as its subject, as certificates did before they had
    /// alternative names. Those that have them are left to `rustls`.
    pub fn has_common_name(&self, host: &str) -> bool {
        if host.parse::<IpAddr>().is_ok() || self.has_alt_names() {
            return false;
        }
        let mut names = self.subject;
        while let Some(mut name) = take(&mut names, SET) {
            while let Some(mut attribute) = take(&mut name, SEQUENCE) {
                let is_common_name = take(&mut attribute, OBJECT_ID) == Some(COMMON_NAME);
                if is_common_name && next(&mut attribute).is_some_and(|(_, value)| matches(value, host)) {
                    return true;
                }
            }
        }
        false
    }

    fn has_alt_names(&self) -> bool {
        let mut extensions = self.extensions;
        while let Some(mut extension) = take(&mut extensions, SEQUENCE) {
            if take(&mut extension, OBJECT_ID) == Some(SUBJECT_ALT_NAME) {
                return true;
            }
        }
        false
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

/// Takes a value of this type off the beginning.
fn take<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    let (found, content) = next(input)?;
    (found == tag).then_some(content)
}

fn next<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, first], mut rest) = input.split_first_chunk::<2>()?;
    let mut length = usize::from(first);
    if first >= 0x80 {
        let (digits, after) = rest.split_at_checked(usize::from(first & 0x7f))?;
        if digits.is_empty() || digits.len() > 4 {
            return None;
        }
        length = digits.iter().fold(0, |length, &digit| length << 8 | usize::from(digit));
        rest = after;
    }
    let (content, after) = rest.split_at_checked(length)?;
    *input = after;
    Some((tag, content))
}

/// `YYMMDDHHMMSSZ` or `YYYYMMDDHHMMSSZ`.
fn time(input: &mut &[u8]) -> Option<i64> {
    let (tag, text) = next(input)?;
    let digits = text.strip_suffix(b"Z")?;
    if !digits.iter().all(u8::is_ascii_digit) || digits.len() % 2 != 0 {
        return None;
    }
    let pairs: Vec<i64> =
        digits.chunks_exact(2).map(|pair| i64::from(pair[0] - b'0') * 10 + i64::from(pair[1] - b'0')).collect();
    let (year, rest) = match (tag, &pairs[..]) {
        (UTC_TIME, [year, rest @ ..]) => (year + if *year < 50 { 2000 } else { 1900 }, rest),
        (GENERALIZED_TIME, [century, year, rest @ ..]) => (century * 100 + year, rest),
        _ => return None,
    };
    let &[month, day, hour, minute, second] = rest else { return None };
    Some(((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second)
}

/// Days since 1970, in the Gregorian calendar. Years begin in March, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_times() {
        assert_eq!(time(&mut &b"\x17\x0d700101000000Z"[..]), Some(0));
        assert_eq!(time(&mut &b"\x18\x0f20240229123456Z"[..]), Some(1_709_210_096));
        assert_eq!(time(&mut &b"\x17\x0d7001010000zzZ"[..]), None);
        assert_eq!(time(&mut &b"\x17\x01Z"[..]), None);
    }

    #[test]
    fn compares_names() {
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
