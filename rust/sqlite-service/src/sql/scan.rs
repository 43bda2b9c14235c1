//! Finds the placeholders and the first words of a statement as SQLite reads SQL: outside of strings, quoted names and
//! comments. It does not validate the statement; SQLite does.
//!
//! It works on bytes: nearly everything it looks for is ASCII, and in UTF-8 no byte of another character is. All bytes
//! of other characters may be part of a name.
use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use edge_service::sql::{Cache, number};

use super::refuse::{Refusal, WORDS, is_space, refusals};

/// SQLite treats it as a blank, except within a name.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// What is known of a statement by its first word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Select,
    /// Another that reads only: VALUES, PRAGMA, EXPLAIN. WITH may write.
    Read,
    /// INSERT and REPLACE, which have an id.
    Insert,
    Other,
}

impl Verb {
    fn of(word: Option<&str>) -> Self {
        match word {
            Some("SELECT") => Self::Select,
            Some("VALUES" | "PRAGMA" | "EXPLAIN") => Self::Read,
            Some("INSERT" | "REPLACE") => Self::Insert,
            _ => Self::Other,
        }
    }

    pub fn only_reads(self) -> bool {
        matches!(self, Self::Select | Self::Read)
    }
}

/// Number of statements in a text. The body of a trigger is part of its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statements {
    None,
    One,
    Several,
}

/// A scanned statement.
#[derive(Clone, Debug)]
pub struct Scanned {
    pub sql: Arc<str>,
    /// Number of parameters. Not an integer, because a statement may say `?99999999999999999999`.
    pub placeholders: f64,
    pub verb: Verb,
    pub statements: Statements,
    /// Why it is refused outside of transactions.
    pub refused: Option<Refusal>,
    pub refused_in_transaction: Option<Refusal>,
}

thread_local! {
    static CACHE: RefCell<Cache<Arc<str>, Scanned>> = RefCell::default();
}

/// Scans a statement; results are cached.
pub fn scan(sql: &str) -> Scanned {
    CACHE.with_borrow_mut(|cache| cache.get(sql, || Scanner::new(sql).scan()))
}

struct Scanner<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    words: Vec<String>,
    /// Start and end of each placeholder.
    found: Vec<(usize, usize)>,
    statements: Statements,
    /// Whether a semicolon has ended the statement.
    is_ended: bool,
}

impl<'a> Scanner<'a> {
    fn new(sql: &'a str) -> Self {
        let (words, found) = (Vec::new(), Vec::new());
        Self { sql, bytes: sql.as_bytes(), words, found, statements: Statements::None, is_ended: false }
    }

    /// Returns the text of the statement, and what is known about it.
    fn scan(mut self) -> (Arc<str>, Scanned) {
        let mut at = 0;
        while at < self.bytes.len() {
            let end = self.token_end(at);
            self.count_statement(at, end);
            at = end;
        }
        let text: Arc<str> = Arc::from(self.sql);
        let (sql, placeholders) = self.numbered(&text);
        let (refused, refused_in_transaction) = refusals(&sql, &self.words);
        let verb = Verb::of(self.words.first().map(String::as_str));
        (text, Scanned { sql, placeholders, verb, statements: self.statements, refused, refused_in_transaction })
    }

    /// The end of the token that begins at `at`.
    fn token_end(&mut self, at: usize) -> usize {
        match self.bytes[at] {
            // A doubled quote is read as two adjacent strings, which is equivalent here.
            b'\'' => self.behind("'", at + 1),
            b'"' => self.behind("\"", at + 1),
            b'`' => self.behind("`", at + 1),
            b'[' => self.behind("]", at + 1),
            b'-' if self.byte(at + 1) == Some(b'-') => self.behind("\n", at),
            b'/' if self.byte(at + 1) == Some(b'*') => self.behind("*/", at + 2),
            b'?' => self.placeholder(at, at + 1 + self.count_from(at + 1, |byte| byte.is_ascii_digit())),
            b'$' | b':' | b'@' => self.named(at),
            _ if self.sql[at..].starts_with(BYTE_ORDER_MARK) => at + BYTE_ORDER_MARK.len(),
            byte if is_name_start(byte) => self.word(at),
            _ => at + 1,
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn count_from(&self, at: usize, is_part: impl Fn(u8) -> bool) -> usize {
        self.bytes[at..].iter().take_while(|&&byte| is_part(byte)).count()
    }

    /// The position after the next `end`, or that of the end of the text.
    fn behind(&self, end: &str, from: usize) -> usize {
        let found = self.sql.get(from..).and_then(|rest| rest.find(end));
        found.map_or(self.bytes.len(), |index| from + index + end.len())
    }

    fn word(&mut self, start: usize) -> usize {
        let end = start + self.count_from(start, is_name_part);
        if self.words.len() < WORDS {
            // Stricter than SQLite: some letters of other alphabets have capitals in ASCII.
            self.words.push(self.sql[start..end].to_uppercase());
        }
        end
    }

    /// `:name`, `@name`, `$name`
    fn named(&mut self, at: usize) -> usize {
        let end = at + 1 + self.count_from(at + 1, is_name_part);
        if end > at + 1 { self.placeholder(at, end) } else { end }
    }

    fn placeholder(&mut self, start: usize, end: usize) -> usize {
        self.found.push((start, end));
        end
    }

    fn count_statement(&mut self, start: usize, end: usize) {
        if self.statements == Statements::Several {
            return;
        }
        let first = self.bytes[start];
        let is_comment = end - start > 1 && (first == b'-' || first == b'/');
        if is_comment || self.sql[start..].starts_with(is_space) {
            return;
        }
        if first == b';' {
            self.is_ended = self.statements == Statements::One && !self.is_trigger();
        } else {
            self.statements = if self.is_ended { Statements::Several } else { Statements::One };
        }
    }

    fn is_trigger(&self) -> bool {
        let word = |index: usize| self.words.get(index).map_or("", String::as_str);
        word(0) == "CREATE" && (word(1) == "TRIGGER" || word(2) == "TRIGGER")
    }

    /// The statement with numbers as SQLite assigns them, and the highest: a name keeps its number, and a new parameter
    /// gets the highest so far plus one.
    fn numbered(&self, text: &Arc<str>) -> (Arc<str>, f64) {
        if self.found.iter().all(|&(start, end)| end - start == 1) {
            return (text.clone(), self.found.len() as f64);
        }
        let mut numbers: HashMap<&str, f64> = HashMap::new();
        let mut highest = 0.0_f64;
        let (mut sql, mut copied) = (String::new(), 0);
        for &(start, end) in &self.found {
            let name = &self.sql[start..end];
            let given = match name.strip_prefix('?') {
                Some("") => None,
                Some(digits) => Some(digits.parse().unwrap_or(f64::INFINITY)),
                None => numbers.get(name).copied(),
            };
            let number = given.unwrap_or(highest + 1.0);
            if name != "?" {
                numbers.insert(name, number);
            }
            highest = highest.max(number);
            // Writing to a string does not fail.
            let _ = write!(sql, "{}?{}", &self.sql[copied..start], number::print(number));
            copied = end;
        }
        sql.push_str(&self.sql[copied..]);
        (sql.into(), highest)
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80
}

fn is_name_part(byte: u8) -> bool {
    is_name_start(byte) || byte.is_ascii_digit() || byte == b'$'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_scanned_to_its_end() {
        const UNITS: [&str; 24] = [
            "'", "\"", "`", "[", "]", "$", "?", ":", "@", "\\", "/", "*", "-", "#", "!", "\n", " ", "a", "E", "1", ";",
            "ü", "😀", "\u{feff}",
        ];
        // A generator of Lehmer, so that each run is the same.
        let mut state: u64 = 1;
        for _ in 0..20_000 {
            let mut sql = String::new();
            for _ in 0..16 {
                state = state * 48_271 % 0x7fff_ffff;
                sql.push_str(UNITS[state as usize % UNITS.len()]);
            }
            let scanned = scan(&sql);
            if scanned.placeholders == 0.0 && !sql.contains("?0") {
                assert_eq!(&*scanned.sql, sql);
            }
        }
    }

    #[test]
    fn long_statements_are_scanned_quickly() {
        let start = std::time::Instant::now();
        let many = format!("SELECT {} '{}'", "?, 'x', ".repeat(60_000), "a".repeat(5_000_000));
        assert_eq!(scan(&many).placeholders, 60_000.0);
        for unit in ["/*", "$a", "[", "'", "--", "? ", "??", ":a ", "?1", ";", "\u{feff}"] {
            scan(&unit.repeat(1_000_000));
        }
        assert!(start.elapsed().as_secs() < 20, "took {:?}", start.elapsed());
    }
}
