//! URIs and IRIs (RFC 3986 and 3987), and templates of them (RFC 6570), of which the library takes no other scripts.
use iri_string::spec::{IriSpec, UriSpec};
use iri_string::validate::{iri, iri_reference};

/// `international`: with characters beyond ASCII. `is_absolute`: with a scheme.
pub fn is_uri(text: &str, international: bool, is_absolute: bool) -> bool {
    let checked = match (international, is_absolute) {
        (false, false) => iri_reference::<UriSpec>(text),
        (false, true) => iri::<UriSpec>(text),
        (true, false) => iri_reference::<IriSpec>(text),
        (true, true) => iri::<IriSpec>(text),
    };
    checked.is_ok()
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
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"_%".contains(&byte);
    let is_encoded = |rest: &str| rest.len() >= 2 && rest.bytes().take(2).all(|digit| digit.is_ascii_hexdigit());
    !text.is_empty() && text.bytes().all(is_letter) && text.split('%').skip(1).all(is_encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_and_references_are_told_from_what_is_neither() {
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
        // RFC 3987: characters of private use in the query only, and none that are not characters.
        assert!(is_uri("http://a/?\u{e000}", true, true) && !is_uri("http://a/\u{e000}", true, true));
        assert!(!is_uri("http://a/\u{1fffe}", true, true));
        assert!(is_uri("a/b:c", false, false) && !is_uri("1a:b", false, false) && is_uri("", false, false));
    }

    #[test]
    fn templates_have_closed_expressions_with_valid_names() {
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
