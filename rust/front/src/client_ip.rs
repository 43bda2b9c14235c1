//! Who a request is from, where trusted proxies stand between the client and the gateway (`TRUSTED_PROXIES`).
//!
//! Proxies add what they see at the end of `Forwarded` (RFC 7239) or `X-Forwarded-For`; what stands before may be
//! anything that the client sent. So both are read from their ends: as long as an address is that of a trusted proxy,
//! what stands before it was added by this proxy, and the first other address is the client. `X-Forwarded-For` counts
//! alone if it is there: nearly all proxies add to it, and many let `Forwarded` of clients pass. A proxy that adds to
//! `Forwarded` has to remove the other.
use std::borrow::Cow;
use std::iter;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net};

pub const HTTP: &str = "http";
const HTTPS: &str = "https";

/// The proxies whose headers about clients are believed.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(NetworkList);

/// Networks that do not overlap.
#[derive(Clone, Debug, Default)]
pub struct NetworkList {
    /// Sorted, and none within another.
    networks: Vec<IpNet>,
}

impl NetworkList {
    /// Reads addresses and networks, e.g. `10.0.0.0/8`, `::1`. The error says which text is neither.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, String> {
        let networks = texts.iter().map(|text| read_network(text.as_ref())).collect::<Result<Vec<_>, _>>()?;
        Ok(Self { networks: IpNet::aggregate(&networks) })
    }

    /// `address`: IPv4 that is mapped to IPv6 is not found.
    pub fn contains(&self, address: IpAddr) -> bool {
        let at = self.networks.partition_point(|network| network.network() <= address);
        at > 0 && self.networks[at - 1].contains(&address)
    }
}

/// Who sent a request, and with which protocol, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestSource {
    /// An IPv4 address that is mapped to IPv6 is given as IPv4.
    pub ip: IpAddr,
    /// `http` or `https`.
    pub scheme: &'static str,
}

/// What a proxy says about where it got the request from.
#[derive(Default)]
struct Hop {
    /// `None` when it is unknown, or hidden.
    address: Option<IpAddr>,
    scheme: Option<&'static str>,
}

impl TrustedProxies {
    /// Reads addresses and networks, e.g. `10.0.0.0/8`, `::1`. The error says which text is neither.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, String> {
        NetworkList::parse(texts).map(Self)
    }

    /// Who a request is from. The headers are not looked at unless the peer is a trusted proxy.
    pub fn client<'h>(
        &self,
        peer: IpAddr,
        is_secure: bool,
        headers: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    ) -> RequestSource {
        let peer = peer.to_canonical();
        let own = if is_secure { HTTPS } else { HTTP };
        if !self.trusts(peer) {
            return RequestSource { ip: peer, scheme: own };
        }
        let [mut forwarded, mut addresses, mut schemes] = [const { Vec::new() }; 3];
        for (name, value) in headers {
            // Comparing the length first avoids looking at nearly all names.
            match name.len() {
                9 if name.eq_ignore_ascii_case(b"forwarded") => forwarded.push(value),
                15 if name.eq_ignore_ascii_case(b"x-forwarded-for") => addresses.push(value),
                17 if name.eq_ignore_ascii_case(b"x-forwarded-proto") => schemes.push(value),
                _ => {}
            }
        }
        let (ip, hop, scheme) = if addresses.is_empty() {
            self.walk(peer, elements(&forwarded).map(read_forwarded))
        } else {
            self.walk(peer, elements(&addresses).map(|text| Hop { address: read_address(text), scheme: None }))
        };
        // A proxy that adds to this list does so with each request, like to the other: what it says about the client
        // is as far from the end. Most proxies replace the list instead, and it has one value.
        let scheme = scheme.or_else(|| read_scheme(elements(&schemes).take(hop + 1).last()?));
        RequestSource { ip, scheme: scheme.unwrap_or(own) }
    }

    /// Follows hops from the gateway towards the client. Gives the last address that is known, and of the last hop that
    /// a trusted proxy added: how many come after it, and its scheme. It may have the scheme of a client whose address
    /// it hides.
    fn walk(&self, peer: IpAddr, hops: impl Iterator<Item = Hop>) -> (IpAddr, usize, Option<&'static str>) {
        let mut found = (peer, 0, None);
        for (at, hop) in hops.enumerate() {
            found = (hop.address.unwrap_or(found.0), at, hop.scheme);
            if hop.address.is_none_or(|address| !self.trusts(address)) {
                break;
            }
        }
        found
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.contains(address)
    }
}

fn read_network(text: &str) -> Result<IpNet, String> {
    let network = text.parse().or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
    let network: IpNet =
        network.map_err(|_| format!("\"{text}\" is not an address or a network such as 10.0.0.0/8"))?;
    let IpAddr::V6(first) = network.network() else { return Ok(network) };
    let length = network.prefix_len().checked_sub(96);
    let mapped = first.to_ipv4_mapped().zip(length).and_then(|(first, length)| Ipv4Net::new(first, length).ok());
    Ok(mapped.map_or(network, IpNet::from))
}

/// The elements of a list in several headers, the last one first.
fn elements<'h>(values: &[&'h [u8]]) -> impl Iterator<Item = &'h [u8]> {
    values.iter().rev().flat_map(|value| parts(value, b','))
}

/// The parts of a text between delimiters that are not within quotes, the last one first. It is read from the end since
/// a client may have sent quotes at the beginning that do not match.
fn parts(text: &[u8], delimiter: u8) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(text);
    let next = move || {
        let (before, part) = split_last(rest?, delimiter);
        rest = before;
        Some(part.trim_ascii())
    };
    iter::from_fn(next).filter(|part| !part.is_empty())
}

fn split_last(text: &[u8], delimiter: u8) -> (Option<&[u8]>, &[u8]) {
    let mut is_quoted = false;
    let mut end = text.len();
    while let [before @ .., byte] = &text[..end] {
        end -= 1;
        if *byte == b'"' {
            let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
            is_quoted ^= escapes % 2 == 0;
            end -= escapes;
        } else if *byte == delimiter && !is_quoted {
            return (Some(before), &text[end + 1..]);
        }
    }
    (None, text)
}

/// Reads an element of `Forwarded`: `for="[2001:db8::1]:4711";proto=https;by=_gateway`.
fn read_forwarded(element: &[u8]) -> Hop {
    let mut hop = Hop::default();
    for pair in parts(element, b';') {
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = (pair[..at].trim_ascii(), unquoted(pair[at + 1..].trim_ascii()));
        if name.eq_ignore_ascii_case(b"for") {
            hop.address = read_address(&value);
        } else if name.eq_ignore_ascii_case(b"proto") {
            hop.scheme = read_scheme(&value);
        }
    }
    hop
}

fn unquoted(value: &[u8]) -> Cow<'_, [u8]> {
    let Some(inner) = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")) else {
        return value.into();
    };
    if !inner.contains(&b'\\') {
        return inner.into();
    }
    let mut is_escaped = false;
    let plain = inner.iter().copied().filter(|byte| {
        is_escaped = *byte == b'\\' && !is_escaped;
        !is_escaped
    });
    plain.collect::<Vec<_>>().into()
}

/// Reads an address, perhaps with a port: `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]:4711`.
fn read_address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(address.to_canonical());
    }
    let (address, port) = match text.strip_prefix('[') {
        Some(bracketed) => {
            let (address, port) = bracketed.split_once(']')?;
            (IpAddr::V6(address.parse().ok()?), port)
        }
        None => {
            let (address, port) = text.split_at(text.find(':')?);
            (IpAddr::V4(address.parse().ok()?), port)
        }
    };
    is_port(port).then(|| address.to_canonical())
}

/// Whether this is a colon with a port, which may be hidden (`:_a1`), or nothing.
fn is_port(text: &str) -> bool {
    let is_port_text = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    text.is_empty() || text.strip_prefix(':').is_some_and(is_port_text)
}

fn read_scheme(text: &[u8]) -> Option<&'static str> {
    [HTTP, HTTPS].into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.as_bytes()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What these headers say of a client behind proxies in 10.0.0.0/8 and 2001:db8:1::/48, one of which is the peer.
    fn client(headers: &[(&str, &str)]) -> (String, &'static str) {
        client_of("10.0.0.1", headers)
    }

    fn client_of(peer: &str, headers: &[(&str, &str)]) -> (String, &'static str) {
        let proxies = TrustedProxies::parse(&["10.0.0.0/8", "2001:db8:1::/48"]).unwrap();
        let headers = headers.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let RequestSource { ip, scheme } = proxies.client(peer.parse().unwrap(), false, headers);
        (ip.to_string(), scheme)
    }

    fn found(ip: &str, scheme: &'static str) -> (String, &'static str) {
        (ip.into(), scheme)
    }

    #[test]
    fn the_client_is_the_peer_unless_that_is_a_trusted_proxy() {
        let headers =
            [("Forwarded", "for=1.2.3.4;proto=https"), ("X-Forwarded-For", "1.2.3.4"), ("X-Forwarded-Proto", "https")];
        assert_eq!(client_of("9.9.9.9", &headers), found("9.9.9.9", "http"));
        assert_eq!(client_of("::ffff:9.9.9.9", &headers), found("9.9.9.9", "http"));
        assert_eq!(client_of("::ffff:10.0.0.9", &headers), found("1.2.3.4", "https"));
        assert_eq!(client_of("2001:db8:1::7", &headers), found("1.2.3.4", "https"));
        assert_eq!(client(&[]), found("10.0.0.1", "http"));
        assert_eq!(client(&[("X-Forwarded-For", ""), ("Accept", "1.2.3.4")]), found("10.0.0.1", "http"));
        let unseen = iter::from_fn(|| -> Option<(&[u8], &[u8])> { panic!("the headers are not looked at") });
        let nobody = TrustedProxies::default().client("10.0.0.1".parse().unwrap(), false, unseen);
        assert_eq!(nobody, RequestSource { ip: "10.0.0.1".parse().unwrap(), scheme: "http" });
    }

    #[test]
    fn a_connection_with_tls_is_https_unless_a_trusted_proxy_says_something_else() {
        let scheme = |peer: &str, told: &str| {
            let headers = [(&b"X-Forwarded-Proto"[..], told.as_bytes())].into_iter();
            TrustedProxies::parse(&["10.0.0.0/8"]).unwrap().client(peer.parse().unwrap(), true, headers).scheme
        };
        assert_eq!(
            [scheme("192.0.2.1", "http"), scheme("10.0.0.1", ""), scheme("10.0.0.1", "http")],
            ["https", "https", "http"]
        );
    }

    #[test]
    fn the_client_is_the_last_address_that_is_not_of_a_trusted_proxy() {
        let of = |value: &str| client(&[("x-forwarded-for", value)]).0;
        assert_eq!(of("1.2.3.4"), "1.2.3.4");
        assert_eq!(of("6.6.6.6, 1.2.3.4"), "1.2.3.4");
        assert_eq!(of("6.6.6.6,1.2.3.4 ,\t10.1.1.1,, 10.2.2.2,"), "1.2.3.4");
        assert_eq!(of("10.3.3.3, 10.2.2.2"), "10.3.3.3");
        assert_eq!(of("1.2.3.4:5678, 10.1.1.1:90"), "1.2.3.4");
        assert_eq!(of("2001:db8::1, [2001:db8:1::9]:443, 2001:db8:1::8"), "2001:db8::1");
        assert_eq!(of("::ffff:1.2.3.4, ::ffff:10.1.1.1"), "1.2.3.4");
        assert_eq!(of("1.2.3.4, ::10.1.1.1"), "::a01:101");
        for end in ["unknown", "_hidden", "1.2.3", "1.2.3.4.5", "01.2.3.4", "[1.2.3.4]", "fe80::1%eth0", "a b", "[::1"]
        {
            assert_eq!(of(&format!("1.2.3.4, {end}, 10.1.1.1")), "10.1.1.1", "{end}");
            assert_eq!(of(&format!("1.2.3.4, {end}")), "10.0.0.1", "{end}");
        }
        let lines = [("X-Forwarded-For", "6.6.6.6, 1.2.3.4"), ("Via", "x"), ("X-Forwarded-For", "10.1.1.1")];
        assert_eq!(client(&lines).0, "1.2.3.4");
    }

    #[test]
    fn the_client_is_read_from_forwarded_where_there_is_nothing_else() {
        let of = |value: &str| client(&[("forwarded", value)]);
        assert_eq!(of("for=1.2.3.4"), found("1.2.3.4", "http"));
        assert_eq!(of("For=1.2.3.4;Proto=HTTPS;by=_me"), found("1.2.3.4", "https"));
        assert_eq!(of("host=\"a,b;for=6.6.6.6\" ; proto=https ; for=\"1.2.3.4:_p\""), found("1.2.3.4", "https"));
        assert_eq!(of("for=\"[2001:db8::1]:4711\""), found("2001:db8::1", "http"));
        assert_eq!(of("for=\"[2001:db8::1]\""), found("2001:db8::1", "http"));
        assert_eq!(of("for=\"1.2\\.3.4\";proto=\"https\""), found("1.2.3.4", "https"));
        let chain = "for=6.6.6.6;proto=http, for=1.2.3.4;proto=https, for=10.1.1.1;proto=http";
        assert_eq!(of(chain), found("1.2.3.4", "https"));
        assert_eq!(of("for=10.2.2.2;proto=https, for=10.1.1.1;proto=http"), found("10.2.2.2", "https"));
        assert_eq!(of(","), found("10.0.0.1", "http"));
        let both = [("Forwarded", "for=6.6.6.6;proto=https"), ("X-Forwarded-For", "1.2.3.4")];
        assert_eq!(client(&both), found("1.2.3.4", "http"));
        let lines = [("Forwarded", "for=6.6.6.6, for=1.2.3.4;proto=https"), ("Forwarded", "for=10.1.1.1")];
        assert_eq!(client(&lines), found("1.2.3.4", "https"));
    }

    #[test]
    fn the_client_has_the_scheme_that_its_proxy_saw_also_when_its_address_is_hidden() {
        let of = |value: &str| client(&[("Forwarded", value)]);
        for hidden in ["for=_abc;", "for=unknown;", "for=\"_abc:80\";", ""] {
            assert_eq!(of(&format!("{hidden}proto=https, for=10.1.1.1;proto=http")), found("10.1.1.1", "https"));
            assert_eq!(of(&format!("for=6.6.6.6, {hidden}proto=https")), found("10.0.0.1", "https"));
        }
    }

    #[test]
    fn the_client_has_the_scheme_of_x_forwarded_proto_where_forwarded_has_none() {
        let of =
            |addresses: &str, schemes: &str| client(&[("X-Forwarded-For", addresses), ("X-Forwarded-Proto", schemes)]);
        assert_eq!(of("1.2.3.4", "https"), found("1.2.3.4", "https"));
        assert_eq!(of("1.2.3.4", "HTTPS"), found("1.2.3.4", "https"));
        assert_eq!(of("1.2.3.4", "wss"), found("1.2.3.4", "http"));
        assert_eq!(of("", "http, https"), found("10.0.0.1", "https"));
        // One proxy, which adds to what the client sent.
        assert_eq!(of("6.6.6.6, 1.2.3.4", "https, http"), found("1.2.3.4", "http"));
        // Two proxies: each adds to both lists, or one of them replaces the second.
        assert_eq!(of("1.2.3.4, 10.1.1.1", "https, http"), found("1.2.3.4", "https"));
        assert_eq!(of("6.6.6.6, 1.2.3.4, 10.1.1.1", "http, https, http"), found("1.2.3.4", "https"));
        assert_eq!(of("6.6.6.6, 1.2.3.4, 10.1.1.1", "https"), found("1.2.3.4", "https"));
        let lines = [("Forwarded", "for=1.2.3.4"), ("X-Forwarded-Proto", "http"), ("X-Forwarded-Proto", "https")];
        assert_eq!(client(&lines), found("1.2.3.4", "https"));
        let both = [("Forwarded", "for=1.2.3.4;proto=http"), ("X-Forwarded-Proto", "https")];
        assert_eq!(client(&both), found("1.2.3.4", "http"));
    }

    #[test]
    fn networks_are_addresses_too_and_mapped_ones_are_of_ipv4() {
        let trusts = |text: &str, address: &str| {
            TrustedProxies::parse(&[text]).unwrap().trusts(address.parse::<IpAddr>().unwrap().to_canonical())
        };
        assert!(trusts("10.1.2.3", "10.1.2.3") && !trusts("10.1.2.3", "10.1.2.4"));
        assert!(trusts("10.1.2.3/8", "10.9.9.9") && !trusts("10.1.2.3/8", "11.0.0.0"));
        assert!(trusts("::1", "::1") && !trusts("::1", "::2"));
        assert!(trusts("fd00::/8", "fdff::1") && !trusts("fd00::/8", "fe00::"));
        assert!(trusts("::ffff:10.0.0.0/104", "10.9.9.9") && trusts("::ffff:10.0.0.1", "::ffff:10.0.0.1"));
        assert!(trusts("0.0.0.0/0", "9.9.9.9") && !trusts("0.0.0.0/0", "::1"));
        assert!(trusts("::/0", "::1") && !trusts("::/0", "9.9.9.9"));
        for text in ["", "10.0.0.0/33", "10.0.0/8", "localhost", "::/129", " ::1", "10.0.0.1:80"] {
            assert!(TrustedProxies::parse(&[text]).unwrap_err().contains(&format!("\"{text}\"")), "{text}");
        }
    }

    #[test]
    fn the_client_is_found_in_time_linear_to_the_headers() {
        for piece in ["10.0.0.1,", "\"", "\\", "\\\"", ",", ";", "for=10.0.0.1;", "for=10.0.0.1,", "for=\"\\", "[", ":"]
        {
            let value = piece.repeat(500_000);
            for name in ["Forwarded", "X-Forwarded-For", "X-Forwarded-Proto"] {
                client(&[(name, &value)]);
            }
        }
    }

    /// What a client may send to look like another.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "\"", "\\", ",", ";", "=", " ", "for=", "proto=", "https", "10.0.0.1", "6.6.6.6", "[", "]", ":", "::1",
            "a", "é",
        ]);
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn the_client_is_found_whatever_it_sends_before(
            sent in prop::collection::vec(hostile(), 0..3),
            is_own_line: bool,
            inner in prop::sample::select(vec!["", ", for=10.1.1.1;proto=http", ", for=\"[2001:db8:1::1]:80\""]),
        ) {
            let mut forwarded = sent.clone();
            let mut addresses = sent;
            for (lines, seen) in [(&mut forwarded, "for=1.2.3.4;proto=https"), (&mut addresses, "1.2.3.4")] {
                match lines.last_mut() {
                    Some(last) if !is_own_line => *last = format!("{last}, {seen}"),
                    _ => lines.push(seen.into()),
                }
            }
            forwarded.last_mut().unwrap().push_str(inner);
            let headers = forwarded.iter().map(|value| ("Forwarded", &**value)).collect::<Vec<_>>();
            prop_assert_eq!(client(&headers), found("1.2.3.4", "https"));
            let headers = addresses.iter().map(|value| ("X-Forwarded-For", &**value)).collect::<Vec<_>>();
            prop_assert_eq!(client(&headers).0, "1.2.3.4");
        }

        #[test]
        fn any_bytes_are_read(value: Vec<u8>, start in hostile()) {
            let value = [start.as_bytes(), &value].concat();
            let proxies = TrustedProxies::parse(&["0.0.0.0/0", "::/0"]).unwrap();
            let names: [&[u8]; 3] = [b"Forwarded", b"X-Forwarded-For", b"X-Forwarded-Proto"];
            for name in names {
                proxies.client("10.0.0.1".parse().unwrap(), false, iter::once((name, &*value)));
            }
        }

        #[test]
        fn the_networks_are_those_that_were_given(
            given in prop::collection::vec((any::<[u8; 4]>(), 0..=32u8, any::<bool>()), 0..12),
            asked: [u8; 4],
        ) {
            // Few distinct bytes, so that networks overlap.
            let address = |bytes: [u8; 4], is_v4: bool| match (IpAddr::from(bytes.map(|byte| byte & 3)), is_v4) {
                (IpAddr::V4(v4), false) => IpAddr::V6(v4.to_ipv6_compatible()),
                (address, _) => address,
            };
            let networks = given.iter().map(|&(bytes, length, is_v4)| {
                IpNet::new(address(bytes, is_v4), if is_v4 { length } else { length + 96 }).unwrap()
            });
            let networks = networks.collect::<Vec<_>>();
            let texts = networks.iter().map(|network| network.to_string()).collect::<Vec<_>>();
            let proxies = TrustedProxies::parse(&texts).unwrap();
            for asked in [address(asked, true), address(asked, false)] {
                prop_assert_eq!(proxies.trusts(asked), networks.iter().any(|network| network.contains(&asked)));
            }
        }
    }
}
