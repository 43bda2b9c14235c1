//! Finds the placeholders and the first words of a statement as SQLite reads SQL: outside of strings, quoted names and
//! comments. It does not validate the statement; SQLite does.
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use edge_service::sql::source::{Source, is_name_part, is_name_start, is_space};
use edge_service::sql::{Cache, Param};

use super::Value;
use super::refuse::{Refusal, WORDS, refusals};

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
    source: Source<'a>,
    words: Vec<String>,
    /// The numbers of placeholders with names.
    numbers: HashMap<&'a str, f64>,
    highest: f64,
    /// Whether all placeholders are `?`.
    is_plain: bool,
    /// The statement with numbers, up to `copied` in its text.
    numbered: String,
    copied: usize,
    statements: Statements,
    /// Whether a semicolon has ended the statement.
    is_ended: bool,
}

impl<'a> Scanner<'a> {
    fn new(sql: &'a str) -> Self {
        Self {
            source: Source::new(sql),
            words: Vec::new(),
            numbers: HashMap::new(),
            highest: 0.0,
            is_plain: true,
            numbered: String::new(),
            copied: 0,
            statements: Statements::None,
            is_ended: false,
        }
    }

    /// Returns the text of the statement, and what is known about it.
    fn scan(mut self) -> (Arc<str>, Scanned) {
        let mut at = 0;
        while at < self.source.bytes.len() {
            let end = self.token_end(at);
            self.count_statement(at, end);
            at = end;
        }
        let text: Arc<str> = Arc::from(self.source.text);
        let sql = if self.is_plain || self.copied == 0 {
            text.clone()
        } else {
            self.numbered.push_str(&self.source.text[self.copied..]);
            self.numbered.into()
        };
        let (refused, refused_in_transaction) = refusals(&sql, &self.words);
        let verb = Verb::of(self.words.first().map(String::as_str));
        let (placeholders, statements) = (self.highest, self.statements);
        (text, Scanned { sql, placeholders, verb, statements, refused, refused_in_transaction })
    }

    /// The end of the token that begins at `at`.
    fn token_end(&mut self, at: usize) -> usize {
        match self.source.bytes[at] {
            // A doubled quote is read as two adjacent strings, which is equivalent here.
            b'\'' => self.source.behind("'", at + 1),
            b'"' => self.source.behind("\"", at + 1),
            b'`' => self.source.behind("`", at + 1),
            b'[' => self.source.behind("]", at + 1),
            b'-' if self.source.byte(at + 1) == Some(b'-') => self.source.behind("\n", at),
            b'/' if self.source.byte(at + 1) == Some(b'*') => self.source.behind("*/", at + 2),
            b'?' => self.placeholder(at, self.source.end_of(at + 1, |byte| byte.is_ascii_digit())),
            b'$' | b':' | b'@' => self.named(at),
            _ if self.source.text[at..].starts_with(BYTE_ORDER_MARK) => at + BYTE_ORDER_MARK.len(),
            byte if is_name_start(byte) => self.word(at),
            _ => at + 1,
        }
    }

    fn word(&mut self, start: usize) -> usize {
        let end = self.source.end_of(start, is_name_part);
        if self.words.len() < WORDS {
            self.words.push(self.source.word(start, end));
        }
        end
    }

    /// `:name`, `@name`, `$name`
    fn named(&mut self, at: usize) -> usize {
        let end = self.source.end_of(at + 1, is_name_part);
        if end > at + 1 { self.placeholder(at, end) } else { end }
    }

    /// Gives it the number that SQLite does: a name keeps its number, and a new parameter gets the highest so far plus
    /// one.
    fn placeholder(&mut self, start: usize, end: usize) -> usize {
        let name = &self.source.text[start..end];
        self.is_plain &= name == "?";
        let next = self.highest + 1.0;
        let number = match name.strip_prefix('?') {
            Some("") => next,
            Some(digits) => digits.parse().unwrap_or(f64::INFINITY),
            None if self.highest <= Value::MAX as f64 => *self.numbers.entry(name).or_insert(next),
            None => next,
        };
        self.highest = self.highest.max(number);
        // What has too many is refused, whatever its text.
        if self.highest <= Value::MAX as f64 {
            self.numbered.push_str(&self.source.text[self.copied..start]);
            self.numbered.push('?');
            self.numbered.push_str(itoa::Buffer::new().format(number as u32));
            self.copied = end;
        }
        end
    }

    fn count_statement(&mut self, start: usize, end: usize) {
        if self.statements == Statements::Several {
            return;
        }
        let first = self.source.bytes[start];
        let is_comment = end - start > 1 && (first == b'-' || first == b'/');
        if is_comment || self.source.text[start..].starts_with(is_space) {
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
        let names: String = (0..40_000).map(|number| format!(":a{number}")).collect();
        assert_eq!(scan(&names).placeholders, 40_000.0);
        for unit in ["/*", "$a", "[", "'", "--", "? ", "??", ":a ", "?1", ";", "\u{feff}"] {
            scan(&unit.repeat(1_000_000));
        }
        assert!(start.elapsed().as_secs() < 20, "took {:?}", start.elapsed());
    }
}
