//! Hashes and signatures, written as hexadecimal digits.

/// A hash of 32 bytes.
pub fn bytes_of_hex(text: &str) -> Option<[u8; 32]> {
    hex_bytes(text)?.try_into().ok()
}

/// The bytes of a text in hexadecimal; none if it is no such text, or has more than 64 bytes.
pub fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    if text.len() % 2 != 0 || text.len() > 128 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}
