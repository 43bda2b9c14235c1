//! How a statement begins.

/// SQLite treats it as a blank.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What is decided by the first word of a statement, before SQLite has read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Select,
    /// INSERT and REPLACE, which have an id.
    Insert,
    Vacuum,
    Other,
}

impl Verb {
    pub fn of(sql: &str) -> Self {
        let start = after_blanks(sql);
        let end = start.bytes().take_while(u8::is_ascii_alphabetic).count();
        match start[..end].to_ascii_uppercase().as_str() {
            "SELECT" => Self::Select,
            "INSERT" | "REPLACE" => Self::Insert,
            "VACUUM" => Self::Vacuum,
            _ => Self::Other,
        }
    }
}

/// What follows blanks, comments and semicolons.
pub fn after_blanks(sql: &str) -> &str {
    let mut rest = sql;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\n', '\u{c}', '\r', ';', BYTE_ORDER_MARK]);
        let comment_end = match rest.as_bytes() {
            [b'-', b'-', ..] => rest.find('\n').map(|at| at + 1),
            [b'/', b'*', ..] => rest[2..].find("*/").map(|at| at + 4),
            _ => return rest,
        };
        // One that does not end goes to the end of the text.
        rest = comment_end.map_or("", |end| &rest[end..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_begins_after_blanks_and_comments() {
        for (sql, verb) in [
            ("select 1", Verb::Select),
            (";\u{feff} -- INSERT\n/* * / */\r\n\tSELECT\u{feff}1", Verb::Select),
            ("Replace INTO t VALUES (1)", Verb::Insert),
            ("/* open SELECT", Verb::Other),
            ("-- SELECT", Verb::Other),
            ("SELECTED", Verb::Other),
            ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", Verb::Other),
            ("", Verb::Other),
        ] {
            assert_eq!(Verb::of(sql), verb, "{sql}");
        }
        for (sql, rest) in [(" ;; -- x", ""), ("/**/", ""), ("/*/", ""), ("; x;", "x;"), ("\0", "\0"), ("- 1", "- 1")] {
            assert_eq!(after_blanks(sql), rest, "{sql:?}");
        }
    }

    #[test]
    fn long_texts_are_read_in_linear_time() {
        let start = std::time::Instant::now();
        for unit in ["/*", "/**/", "--", "--\n", ";", "\u{feff}", " "] {
            after_blanks(&unit.repeat(300_000));
        }
        assert!(start.elapsed().as_secs() < 20, "took {:?}", start.elapsed());
    }
}
