//! The cookies of the management API: of its sessions, and of sign-ins that have begun. Browsers send the cookies of a
//! host to all its ports: whoever is signed in at the management API sends theirs to endpoints, too. Handlers neither
//! see them nor set them.
use std::borrow::Cow;

/// `src/api/access/session-cookie.ts` and `src/api/sessions/sign-in-attempt.ts` have the same names.
const NAMES: [&[u8]; 2] = [b"egw_session", b"egw_sign_in"];
/// All names contain this.
const COMMON: &[u8] = b"egw_s";
/// Names begin with this where browsers come by TLS.
const TLS_PREFIX: &[u8] = b"__Host-";

/// The value of a `Cookie` header without them; `None` when nothing else is there.
pub fn without_sessions(value: &[u8]) -> Option<Cow<'_, [u8]>> {
    if memchr::memmem::find(value, COMMON).is_none() {
        return Some(value.into());
    }
    let kept: Vec<&[u8]> = value.split(|&byte| byte == b';').filter(|pair| !is_session(pair)).collect();
    let rest = kept.join(&b';');
    let rest = rest.trim_ascii();
    (!rest.is_empty()).then(|| rest.to_vec().into())
}

/// Whether a `Set-Cookie` header is about one of them.
pub fn sets_session(value: &[u8]) -> bool {
    is_session(value.split(|&byte| byte == b';').next().unwrap_or_default())
}

/// Browsers send a cookie without a name as its value alone, which can look like a name and a value.
fn is_session(pair: &[u8]) -> bool {
    let text = pair.trim_ascii_start();
    let text = text.strip_prefix(b"=").unwrap_or(text).trim_ascii_start();
    let text = text.strip_prefix(TLS_PREFIX).unwrap_or(text);
    let is_named = |name: &[u8]| {
        text.strip_prefix(name).is_some_and(|rest| rest.trim_ascii_start().first().is_none_or(|&byte| byte == b'='))
    };
    NAMES.into_iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_cookies_are_left_out_among_others() {
        for (value, rest) in [
            ("a=b; c=d", Some("a=b; c=d")),
            ("egw_session=x", None),
            ("a=b; egw_session=x; c=d", Some("a=b; c=d")),
            ("egw_session=x; a=b", Some("a=b")),
            ("egw_sign_in=x; a=b; egw_session=y", Some("a=b")),
            ("egw_sign_in=x", None),
            ("__Host-egw_session=x; a=b; __Host-egw_sign_in=y", Some("a=b")),
            (" egw_session = x;a=b;=egw_session=y", Some("a=b")),
            (
                "my_egw_session=x; egw_session2=y; a=egw_session",
                Some("my_egw_session=x; egw_session2=y; a=egw_session"),
            ),
            // Other white space is part of a name; found by fuzzing.
            ("a=b;\u{a0}egw_session=x", Some("a=b;\u{a0}egw_session=x")),
            ("", Some("")),
        ] {
            let found = without_sessions(value.as_bytes()).map(|text| String::from_utf8(text.into_owned()).unwrap());
            assert_eq!(found.as_deref(), rest, "{value}");
        }
    }

    #[test]
    fn recognizes_set_cookie_of_a_session() {
        for value in [
            "egw_session=x; Path=/",
            " egw_session=",
            "=egw_session=x",
            "egw_session\t=x",
            "egw_session; Max-Age=0",
            "__Host-egw_session=x; Path=/; Secure",
            "egw_sign_in=x; Path=/api/session/oidc",
        ] {
            assert!(sets_session(value.as_bytes()), "{value}");
        }
        for value in ["a=egw_session=x", "egw_session2=x", "egw_sign=x", "a=b; egw_session=x", "EGW_SESSION=x"] {
            assert!(!sets_session(value.as_bytes()), "{value}");
        }
    }
}
