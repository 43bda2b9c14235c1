//! The head of a request, written as HTTP/1.1 has it: what is ambiguous in one version is not taken in the other, and
//! is found by the same code.
use http::header::{COOKIE, EXPECT, HOST};
use http::request::Parts;

use crate::request::Refusal;

/// Writes the head. `h2` has checked its grammar: pseudo-headers, names, and that there is nothing in it that is about
/// the connection.
///
/// # Errors
/// When it would mean something else in HTTP/1.1.
pub fn write(parts: &Parts) -> Result<Vec<u8>, Refusal> {
    let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Refusal::not_http());
    }
    let mut head = Vec::with_capacity(512);
    let mut add = |texts: &[&[u8]]| texts.iter().for_each(|text| head.extend_from_slice(text));
    add(&[parts.method.as_str().as_bytes(), b" ", target.as_bytes(), b" HTTP/1.1\r\n"]);
    if let Some(host) = host(parts)? {
        add(&[b"host: ", host, b"\r\n"]);
    }
    for (name, value) in &parts.headers {
        if name != HOST && name != COOKIE {
            add(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
    }
    // RFC 9113, section 8.2.3: they may come one by one.
    for (at, cookie) in parts.headers.get_all(COOKIE).iter().enumerate() {
        add(&[if at == 0 { b"cookie: " } else { b"; " }, cookie.as_bytes()]);
    }
    add(&[if parts.headers.contains_key(COOKIE) { b"\r\n\r\n" } else { b"\r\n" }]);
    Ok(head)
}

/// Whether the client waits for `100 Continue`.
pub fn expects_continue(parts: &Parts) -> bool {
    parts.headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// The host of `:authority`, or else of the header, which must not say something else (RFC 9113, section 8.3.1).
fn host(parts: &Parts) -> Result<Option<&[u8]>, Refusal> {
    let authority = parts.uri.authority().map(|authority| authority.as_str().as_bytes());
    let mut hosts = parts.headers.get_all(HOST).iter().map(|value| value.as_bytes());
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err(Refusal::malformed("A request needs one Host header."));
    }
    if !parts.uri.scheme_str().is_none_or(|scheme| scheme == "http" || scheme == "https") {
        return Err(Refusal::malformed("The scheme of the request is neither http nor https."));
    }
    match (authority, host) {
        (Some(authority), Some(host)) if !authority.eq_ignore_ascii_case(host) => {
            Err(Refusal::malformed("The Host header and :authority are not the same."))
        }
        (authority, host) => Ok(authority.or(host)),
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn written(uri: &str, headers: &[(&str, &str)]) -> Result<String, Refusal> {
        let request = headers.iter().fold(Request::get(uri), |request, (name, value)| request.header(*name, *value));
        write(&request.body(()).unwrap().into_parts().0).map(|head| String::from_utf8(head).unwrap())
    }

    #[test]
    fn heads_are_those_of_http_1() {
        let headers = [("a", "b"), ("cookie", "c=d"), ("host", "HOST"), ("cookie", "e=f"), ("a", "g")];
        let expected = "GET /x?y HTTP/1.1\r\nhost: host\r\na: b\r\na: g\r\ncookie: c=d; e=f\r\n\r\n";
        assert_eq!(written("http://host/x?y", &headers).unwrap(), expected);
        assert_eq!(written("/", &[("host", "other:1")]).unwrap(), "GET / HTTP/1.1\r\nhost: other:1\r\n\r\n");
        assert_eq!(written("/", &[]).unwrap(), "GET / HTTP/1.1\r\n\r\n");
    }

    #[test]
    fn rejects_ambiguous_heads() {
        for (uri, headers) in [
            ("http://host/", &[("host", "other")][..]),
            ("/", &[("host", "a"), ("host", "a")]),
            ("ftp://host/", &[]),
            ("http://host/\u{fc}", &[]),
        ] {
            assert_eq!(written(uri, headers).unwrap_err().status, 400, "{uri}");
        }
    }
}
