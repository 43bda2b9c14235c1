//! Query strings, decoded as the WHATWG URL standard decodes `application/x-www-form-urlencoded`.

use std::collections::HashMap;

/// `x=1&y=a%20b` as a map. `+` is a space, the last of several equal names wins, and bytes that are not UTF-8 after
/// decoding become U+FFFD: a strange query is never a reason to refuse a request.
pub fn parse(query: &str) -> HashMap<String, String> {
    let mut map = HashMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        map.insert(decode(name), decode(value));
    }
    map
}

fn decode(text: &str) -> String {
    if !text.bytes().any(|b| b == b'%' || b == b'+') {
        return text.to_owned();
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'+' => out.push(b' '),
            b'%' => match (hex(bytes.get(at + 1)), hex(bytes.get(at + 2))) {
                (Some(high), Some(low)) => {
                    out.push(high << 4 | low);
                    at += 2;
                }
                // A percent sign that begins no escape stands for itself.
                _ => out.push(b'%'),
            },
            other => out.push(other),
        }
        at += 1;
    }
    match String::from_utf8(out) {
        Ok(text) => text,
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
    }
}

fn hex(byte: Option<&u8>) -> Option<u8> {
    char::from(*byte?).to_digit(16).map(|digit| digit as u8)
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn get(query: &str, name: &str) -> Option<String> {
        parse(query).remove(name)
    }

    #[test]
    fn decodes_names_and_values() {
        assert_eq!(get("x=1&y=a%20b", "y").as_deref(), Some("a b"));
        assert_eq!(get("a+b=c+d", "a b").as_deref(), Some("c d"));
        assert_eq!(get("%C3%A9=%F0%9F%A6%80", "é").as_deref(), Some("🦀"));
        assert_eq!(get("a=b=c", "a").as_deref(), Some("b=c"));
    }

    #[test]
    fn the_last_duplicate_wins_and_empty_parts_are_skipped() {
        assert_eq!(get("&&x=1&x=2&", "x").as_deref(), Some("2"));
        assert_eq!(parse("&&").len(), 0);
        assert_eq!(get("flag", "flag").as_deref(), Some(""));
        assert_eq!(get("=v", "").as_deref(), Some("v"));
    }

    #[test]
    fn what_cannot_be_decoded_is_kept_or_replaced() {
        assert_eq!(get("x=100%", "x").as_deref(), Some("100%"));
        assert_eq!(get("x=%zz%4", "x").as_deref(), Some("%zz%4"));
        assert_eq!(get("x=%FF", "x").as_deref(), Some("\u{FFFD}"));
    }
}
