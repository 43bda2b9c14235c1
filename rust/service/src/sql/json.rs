//! Values as JSON, written into one buffer.

fn write_content(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            _ => {
                let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
    }
    out.extend_from_slice(&bytes[from..]);
}

/// Adds bytes as a JSON string; what is not text in them is replaced.
pub fn write_escaped(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped_content(value, out);
    out.push(b'"');
}

/// Writes what `write_escaped` does, without the quotes.
pub fn write_escaped_content(value: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(value) {
        Ok(text) => write_content(text, out),
        Err(_) => write_content(&String::from_utf8_lossy(value), out),
    }
}
