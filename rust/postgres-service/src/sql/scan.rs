//! Finds the placeholders and the first words of a statement as PostgreSQL reads SQL: outside of strings, quoted names
//! and comments. It does not validate the statement; the server does.
use std::cell::RefCell;
use std::sync::Arc;

use edge_service::sql::Cache;
use edge_service::sql::source::{Source, is_name_part, is_name_start, is_space};

use super::MAX_PARAMS;
use super::refuse::{Refusal, WORDS, refusals};

/// A scanned statement, as it is sent to the server.
#[derive(Clone, Debug)]
pub struct ScannedStatement {
    pub sql: Arc<str>,
    /// Number of parameters. Not an integer, because a statement may say `$99999999999999999999`.
    pub placeholders: f64,
    /// Whether placeholders have numbers (`$2`), which may be used more than once.
    pub numbered: bool,
    /// Why it is refused outside of transactions.
    pub refused: Option<Refusal>,
    pub refused_in_transaction: Option<Refusal>,
}

thread_local! {
    static CACHE: RefCell<Cache<Arc<str>, ScannedStatement>> = RefCell::default();
}

/// Scans a statement; results are cached.
pub fn scan(sql: &str) -> ScannedStatement {
    CACHE.with_borrow_mut(|cache| cache.get(sql, || Scanner::new(sql).scan()))
}

/// What `?` stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    /// A placeholder, and `??` the operator.
    Question,
    /// The operator: there is a `$1`.
    Native,
}

struct Scanner<'a> {
    source: Source<'a>,
    words: Vec<String>,
    style: Style,
    /// The highest number of a native placeholder.
    highest: f64,
    /// Number of `?` placeholders.
    questions: usize,
    /// The statement with `$n` for `?`, up to `copied`.
    sent: String,
    copied: usize,
}

impl<'a> Scanner<'a> {
    fn new(sql: &'a str) -> Self {
        Self {
            source: Source::new(sql),
            words: Vec::new(),
            style: Style::Question,
            highest: 0.0,
            questions: 0,
            sent: String::new(),
            copied: 0,
        }
    }

    /// Returns the text of the statement, and what is known about it.
    fn scan(mut self) -> (Arc<str>, ScannedStatement) {
        let mut at = 0;
        while at < self.source.bytes.len() {
            at = self.token_end(at);
        }
        let text: Arc<str> = Arc::from(self.source.text);
        let numbered = self.style == Style::Native;
        let sql = if numbered || self.copied == 0 {
            Arc::clone(&text)
        } else {
            self.sent.push_str(&self.source.text[self.copied..]);
            Arc::from(self.sent)
        };
        let placeholders = if numbered { self.highest } else { self.questions as f64 };
        let (refused, refused_in_transaction) = refusals(&self.words);
        (text, ScannedStatement { sql, placeholders, numbered, refused, refused_in_transaction })
    }

    /// The end of the token that begins at `at`.
    fn token_end(&mut self, at: usize) -> usize {
        match self.source.bytes[at] {
            // A doubled quote is read as two adjacent strings, which is equivalent here.
            b'\'' => self.source.behind("'", at + 1),
            b'"' => self.source.behind("\"", at + 1),
            b'-' if self.source.byte(at + 1) == Some(b'-') => self.line_end(at),
            b'/' if self.source.byte(at + 1) == Some(b'*') => self.comment_end(at + 2),
            b'?' => self.question(at),
            b'$' => self.dollar(at),
            byte if is_name_start(byte) => self.word(at),
            _ => at + 1,
        }
    }

    /// The end of a line comment; a carriage return ends a line, too.
    fn line_end(&self, start: usize) -> usize {
        let end = self.source.bytes[start..].iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        end.map_or(self.source.bytes.len(), |index| start + index + 1)
    }

    /// The end of a comment, which may contain others.
    fn comment_end(&self, mut at: usize) -> usize {
        let mut depth = 1;
        while depth > 0 {
            match (self.source.byte(at), self.source.byte(at + 1)) {
                (Some(b'/'), Some(b'*')) => depth += 1,
                (Some(b'*'), Some(b'/')) => depth -= 1,
                (Some(_), _) => {
                    at += 1;
                    continue;
                }
                (None, _) => return self.source.bytes.len(),
            }
            at += 2;
        }
        at
    }

    fn word(&mut self, start: usize) -> usize {
        let end = self.source.end_of(start, is_name_part);
        if self.words.len() < WORDS {
            self.words.push(self.source.word(start, end));
        }
        let is_escape_string =
            matches!(&self.source.bytes[start..end], b"E" | b"e") && self.source.byte(end) == Some(b'\'');
        if is_escape_string { self.escape_string_end(end) } else { end }
    }

    /// The end of a string with escapes, whose quote is at `start`. It continues if the next line begins with a quote.
    fn escape_string_end(&self, start: usize) -> usize {
        let mut end = self.escaped_end(start);
        while let Some(quote) = self.continuation(end) {
            end = self.escaped_end(quote);
        }
        end
    }

    /// The position after the quote that ends the part of such a string.
    fn escaped_end(&self, start: usize) -> usize {
        let mut at = start + 1;
        while let Some(byte) = self.source.byte(at) {
            match byte {
                b'\'' => return at + 1,
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.source.bytes.len()
    }

    /// The position of the quote with which the next line begins, if that is what follows at `from`.
    fn continuation(&self, from: usize) -> Option<usize> {
        let rest = self.source.text.get(from..)?;
        let line = rest.trim_start_matches([' ', '\t', '\x0c', '\x0b']);
        let next = line.strip_prefix(['\n', '\r'])?.trim_start_matches(is_space);
        next.starts_with('\'').then(|| self.source.text.len() - next.len())
    }

    /// `$1`, or a string between `$$` or `$name$`.
    fn dollar(&mut self, at: usize) -> usize {
        let end = self.source.end_of(at + 1, |byte| byte.is_ascii_digit());
        if end > at + 1 {
            self.style = Style::Native;
            self.highest = self.highest.max(self.source.text[at + 1..end].parse().unwrap_or(f64::INFINITY));
            return end;
        }
        // The name has no `$`, and does not begin with a digit.
        let end = self.source.end_of(at + 1, |byte| is_name_start(byte) || byte.is_ascii_digit());
        if self.source.byte(end) == Some(b'$') {
            self.source.behind(&self.source.text[at..=end], end + 1)
        } else {
            at + 1
        }
    }

    /// Without `$n`, `?` is a placeholder and `??` the operator.
    fn question(&mut self, at: usize) -> usize {
        let is_operator = self.source.byte(at + 1) == Some(b'?');
        let end = if is_operator { at + 2 } else { at + 1 };
        if !is_operator {
            self.questions += 1;
        }
        // What has too many is refused, whatever its text.
        if self.style == Style::Native || self.questions > MAX_PARAMS {
            return end;
        }
        self.sent.push_str(&self.source.text[self.copied..at]);
        self.copied = end;
        if is_operator {
            self.sent.push('?');
            return end;
        }
        // A number beside a name would be a part of it.
        let is_name = |at: Option<usize>| at.and_then(|at| self.source.byte(at)).is_some_and(is_name_part);
        let (is_behind, is_before) = (is_name(at.checked_sub(1)), is_name(Some(end)));
        if is_behind {
            self.sent.push(' ');
        }
        self.sent.push('$');
        self.sent.push_str(&self.questions.to_string());
        if is_before {
            self.sent.push(' ');
        }
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_scanned_to_its_end() {
        const UNITS: [&str; 23] = [
            "'", "\"", "`", "[", "]", "$", "?", ":", "@", "\\", "/", "*", "-", "#", "!", "\n", " ", "a", "E", "1", ";",
            "ü", "😀",
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
            if scanned.placeholders == 0.0 && !sql.contains("??") {
                assert_eq!(&*scanned.sql, sql);
            }
        }
    }

    /// PostgreSQL would read `a$1` as a name, and `$$` behind it as a part of that: what is in a string would be words.
    #[test]
    fn placeholders_beside_names_are_none_of_their_parts() {
        assert_eq!(&*scan("LIKE?ESCAPE ?").sql, "LIKE $1 ESCAPE $2");
        assert_eq!(&*scan("a?$$ SET $$").sql, "a $1 $$ SET $$");
        assert_eq!(&*scan("(?,?)=?").sql, "($1,$2)=$3");
    }

    #[test]
    fn long_statements_are_scanned_quickly() {
        let start = std::time::Instant::now();
        let many = format!("SELECT {} '{}'", "?, 'x', ".repeat(60_000), "a".repeat(5_000_000));
        assert_eq!(scan(&many).placeholders, 60_000.0);
        assert_eq!(scan(&format!("E{}?", "'a'\n".repeat(200_000))).placeholders, 1.0);
        assert_eq!(scan(&format!("E'a'{}?", " ".repeat(200_000))).placeholders, 1.0);
        for unit in ["/*", "$a", "$a$", "E'", "--", "? ", "??", "E'a' \n ", "$1"] {
            scan(&unit.repeat(2_000_000));
        }
        assert!(start.elapsed().as_secs() < 20, "took {:?}", start.elapsed());
    }
}
