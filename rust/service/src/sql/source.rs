//! The text of a statement while it is scanned for what stands outside of strings, quoted names and comments.
//!
//! Scans work on bytes: nearly everything they look for is ASCII, and in UTF-8 no byte of another character is. All
//! bytes of other characters may be part of a name.

/// The text of a statement, by positions of its bytes.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    pub text: &'a str,
    pub bytes: &'a [u8],
}

impl<'a> Source<'a> {
    pub fn new(text: &'a str) -> Self {
        Self { text, bytes: text.as_bytes() }
    }

    pub fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    /// The position after the bytes of a kind that follow at `from`.
    pub fn end_of(&self, from: usize, is_part: impl Fn(u8) -> bool) -> usize {
        from + self.bytes[from..].iter().take_while(|&&byte| is_part(byte)).count()
    }

    /// The position after the next `end`, or that of the end of the text.
    pub fn behind(&self, end: &str, from: usize) -> usize {
        let found = self.text.get(from..).and_then(|rest| rest.find(end));
        found.map_or(self.bytes.len(), |index| from + index + end.len())
    }

    /// A word in capitals. That is stricter than databases: some letters of other alphabets have capitals in ASCII.
    pub fn word(&self, start: usize, end: usize) -> String {
        self.text[start..end].to_uppercase()
    }
}

/// Whether a name can begin with this byte.
pub fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

/// Whether this byte can follow in a name.
pub fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

/// The blanks of scans, which are more than those of databases.
pub fn is_space(character: char) -> bool {
    character == '\u{feff}' || (character.is_whitespace() && character != '\u{85}')
}
