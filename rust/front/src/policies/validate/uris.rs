//! URIs and IRIs (RFC 3986 and 3987), and templates of them (RFC 6570).
use std::net::Ipv6Addr;

/// `international`: with characters beyond ASCII. `is_absolute`: with a scheme.
pub fn is_uri(text: &str, international: bool, is_absolute: bool) -> bool {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let fits = |text: &str, more: &str| has_only(text, more, international);
    if !fits(fragment, ":@/?") || !fits(query, ":@/?") {
        return false;
    }
    let scheme = rest.split_once(':').filter(|(scheme, _)| is_scheme(scheme));
    let rest = match scheme {
        Some((_, rest)) => rest,
        None if is_absolute => return false,
        // A colon in the first segment would end a scheme.
        None if rest.split('/').next().is_some_and(|first| first.contains(':')) => return false,
        None => rest,
    };
    let Some(rest) = rest.strip_prefix("//") else { return fits(rest, ":@/") };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    is_authority(authority, international) && fits(path, ":@/")
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn is_authority(text: &str, international: bool) -> bool {
    let (user, host) = text.rsplit_once('@').unwrap_or(("", text));
    if !has_only(user, ":", international) {
        return false;
    }
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = host.strip_prefix('[') {
        let Some((address, rest)) = rest.split_once(']') else { return false };
        let is_future = || {
            let parts = address.strip_prefix(['v', 'V']).and_then(|rest| rest.split_once('.'));
            parts.is_some_and(|(version, rest)| {
                let is_hex = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_hex && !rest.is_empty() && !rest.contains('%') && has_only(rest, ":", false)
            })
        };
        let is_address = address.parse::<Ipv6Addr>().is_ok() || is_future();
        return is_address && (rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port));
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    has_only(name, "", international) && is_port(port)
}

/// Unreserved characters, those that delimit parts, encoded ones, and `more`.
fn has_only(text: &str, more: &str, international: bool) -> bool {
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let fits = match character {
            '%' => {
                let mut is_digit = || rest.next().is_some_and(|digit| digit.is_ascii_hexdigit());
                is_digit() && is_digit()
            }
            character if !character.is_ascii() => international && !is_private_or_control(character),
            character => {
                character.is_ascii_alphanumeric() || "-._~!$&'()*+,;=".contains(character) || more.contains(character)
            }
        };
        if !fits {
            return false;
        }
    }
    true
}

fn is_private_or_control(character: char) -> bool {
    matches!(character, '\u{80}'..='\u{9f}' | '\u{e000}'..='\u{f8ff}' | '\u{fff0}'..='\u{ffff}')
}

pub fn is_uri_template(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        if !has_only_literals(&rest[..at]) {
            return false;
        }
        let Some((expression, after)) = rest[at..].strip_prefix('{').and_then(|inner| inner.split_once('}')) else {
            return false;
        };
        if !is_expression(expression) {
            return false;
        }
        rest = after;
    }
    has_only_literals(rest)
}

fn has_only_literals(text: &str) -> bool {
    text.chars().all(|character| !character.is_control() && !" \"<>\\^`|".contains(character))
}

fn is_expression(text: &str) -> bool {
    let variables = text.strip_prefix(['+', '#', '.', '/', ';', '?', '&', '=', ',', '!', '@', '|']).unwrap_or(text);
    variables.split(',').all(|variable| {
        let name = variable.strip_suffix('*').unwrap_or(variable);
        let (name, prefix) = name.split_once(':').unwrap_or((name, "1"));
        let is_prefix = (1..=4).contains(&prefix.len())
            && !prefix.starts_with('0')
            && prefix.bytes().all(|byte| byte.is_ascii_digit());
        is_prefix && name.split('.').all(is_variable)
    })
}

/// A part of the name of a variable.
fn is_variable(text: &str) -> bool {
    let is_letter = |character: char| character.is_ascii_alphanumeric() || "_%".contains(character);
    !text.is_empty() && text.chars().all(is_letter) && has_only(text, "", false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris() {
        for text in [
            "http://foo.bar/?baz=qux#quux",
            "http://foo.bar/?q=Test%20URL-encoded",
            "urn:oasis:names:specification:docbook:dtd:xml:4.1.2",
            "http://-.~_!$&'()*+,;=:%40:80%2f::::::@example.com",
            "ldap://[2001:db8::7]/c=GB?objectClass?one",
            "mailto:John.Doe@example.com",
            "tel:+1-816-555-1212",
        ] {
            assert!(is_uri(text, false, true), "{text}");
        }
        for text in [
            "//foo.bar/?baz=qux",
            "/abc",
            "\\\\WINDOWS\\fileshare",
            "abc",
            "http:// shouldfail.com",
            ":// should fail",
            "bar,baz:",
            "https://[@example.org/test.txt",
            "https://example.org/foobar\\.txt",
            "https://example.org/foobar<>.txt",
            "http://a/%g0",
            "http://2001:0db8::7334",
            "http://ƒøø/",
        ] {
            assert!(!is_uri(text, false, true), "{text}");
        }
        assert!(is_uri("http://ƒøø.ßår/?∂éœ", true, true) && is_uri("//foo/bar", false, false));
        assert!(is_uri("a/b:c", false, false) && !is_uri("1a:b", false, false) && is_uri("", false, false));
    }

    #[test]
    fn templates() {
        assert!(is_uri_template("http://example.com/{term:1}/{term}{?q*,a.b}'") && is_uri_template(""));
        for text in [
            "http://example.com/{term:1}/{term",
            "a}",
            "{}",
            "{a b}",
            "{a:0}",
            "{a:01}",
            "{a..b}",
            "{a=b}",
            "{+,a}",
            "a<b",
        ] {
            assert!(!is_uri_template(text), "{text}");
        }
    }
}
