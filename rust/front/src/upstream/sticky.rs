//! Callers that keep their handler while several share the requests of an endpoint.
use crate::messages::Sticky;

/// Where a caller stands among all, of 2^32; `None` when it does not say who it is. Equal values have equal places, on
/// every machine and after every restart.
pub fn place_of<'h>(sticky: &Sticky, mut headers: impl Iterator<Item = (&'h str, &'h [u8])>) -> Option<u32> {
    let value = match sticky {
        Sticky::Header(name) => headers.find(|(header, _)| header.eq_ignore_ascii_case(name)).map(|(_, value)| value),
        Sticky::Cookie(name) => headers
            .filter(|(header, _)| header.eq_ignore_ascii_case("cookie"))
            .find_map(|(_, cookies)| cookie(cookies, name.as_bytes())),
    };
    value.filter(|value| !value.is_empty()).map(hash)
}

/// The value of a cookie in a `Cookie` header (RFC 6265, section 4.2.1).
fn cookie<'h>(cookies: &'h [u8], name: &[u8]) -> Option<&'h [u8]> {
    cookies
        .split(|&byte| byte == b';')
        .find_map(|cookie| cookie.trim_ascii().strip_prefix(name).and_then(|rest| rest.strip_prefix(b"=")))
}

/// FNV-1a, finished as in MurmurHash3 so that similar values are far from each other.
fn hash(value: &[u8]) -> u32 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    let mut hash = value.iter().fold(0xcbf2_9ce4_8422_2325, step);
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ hash >> 33).wrapping_mul(factor);
    }
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(sticky: &Sticky, headers: &[(&str, &str)]) -> Option<u32> {
        place_of(sticky, headers.iter().map(|(name, value)| (*name, value.as_bytes())))
    }

    #[test]
    fn the_same_value_has_the_same_place() {
        let user = Sticky::Header("x-user".into());
        let ada = place(&user, &[("Accept", "a"), ("X-User", "ada")]);
        assert_eq!(ada, place(&user, &[("x-user", "ada")]));
        assert!(ada.is_some() && ada != place(&user, &[("x-user", "bob")]));
        assert_eq!(place(&user, &[("x-user", "")]), None);
        assert_eq!(place(&user, &[("Cookie", "x-user=ada")]), None);
        let session = Sticky::Cookie("sid".into());
        assert_eq!(place(&session, &[("cookie", "a=b; sid=ada; c=d")]), ada);
        assert_eq!(place(&session, &[("cookie", "a=b"), ("cookie", "sid=ada")]), ada);
        assert_eq!(place(&session, &[("cookie", "xsid=ada; sidx=ada; sid")]), None);
    }

    #[test]
    fn places_are_spread_evenly() {
        let user = Sticky::Header("u".into());
        let mut tenths = [0; 10];
        for number in 0..10_000 {
            let place = place(&user, &[("u", &format!("user-{number}"))]).unwrap();
            tenths[((u64::from(place) * 10) >> 32) as usize] += 1;
        }
        assert!(tenths.iter().all(|count| (850..1150).contains(count)), "{tenths:?}");
    }
}
