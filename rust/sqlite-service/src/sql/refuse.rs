//! Refuses statements that would change the state of a connection, because all handlers of a service share connections,
//! and those that reach other files. This prevents accidents; what is left open is checked after each call, too.
use std::borrow::Cow;
use std::fmt;

use edge_service::sql::source::is_space;
use edge_service::sql::{SESSION, TRANSACTION};

const FILE: &str = "a service is one file";

/// The first words of statements that are refused, and why.
const REFUSED: [(&str, &str); 6] = [
    ("BEGIN", TRANSACTION),
    ("COMMIT", TRANSACTION),
    ("END", TRANSACTION),
    ("ROLLBACK", TRANSACTION),
    ("ATTACH", FILE),
    ("DETACH", FILE),
];

/// Pragmas that return information or change only the content of the file.
const PRAGMAS: [&str; 20] = [
    "TABLE_INFO",
    "TABLE_XINFO",
    "TABLE_LIST",
    "INDEX_LIST",
    "INDEX_INFO",
    "INDEX_XINFO",
    "FOREIGN_KEY_LIST",
    "FOREIGN_KEY_CHECK",
    "INTEGRITY_CHECK",
    "QUICK_CHECK",
    "COLLATION_LIST",
    "FUNCTION_LIST",
    "MODULE_LIST",
    "COMPILE_OPTIONS",
    "PAGE_COUNT",
    "FREELIST_COUNT",
    "DATA_VERSION",
    "SCHEMA_VERSION",
    "USER_VERSION",
    "APPLICATION_ID",
];
const OPTIMIZE: &str = "OPTIMIZE";

/// Number of words needed to recognise a statement.
pub const WORDS: usize = 6;

/// Why a statement is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    statement: Cow<'static, str>,
    reason: &'static str,
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} is not possible here: {}", self.statement, self.reason)
    }
}

/// Whether a statement is refused outside of transactions, and in one.
///
/// `words` are the first words of the statement outside of strings and comments, in upper case.
pub fn refusals(sql: &str, words: &[String]) -> (Option<Refusal>, Option<Refusal>) {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let savepoint = match word(0) {
        "SAVEPOINT" => Some("SAVEPOINT"),
        "RELEASE" => Some("RELEASE"),
        // ROLLBACK [TRANSACTION] TO [SAVEPOINT] name
        "ROLLBACK" if word(1) == "TO" || word(2) == "TO" => Some("ROLLBACK"),
        _ => None,
    };
    if let Some(statement) = savepoint {
        return (Some(Refusal { statement: statement.into(), reason: TRANSACTION }), None);
    }
    let by_word = || REFUSED.iter().find(|(first, _)| *first == word(0));
    let refusal = if word(0) == "VACUUM" && (word(1) == "INTO" || word(2) == "INTO") {
        Some(Refusal { statement: "VACUUM INTO".into(), reason: FILE })
    } else if word(0) == "PRAGMA" || (word(0) == "EXPLAIN" && words.iter().any(|word| word == "PRAGMA")) {
        // Some take effect even under EXPLAIN.
        refused_pragma(sql)
    } else {
        by_word().map(|&(statement, reason)| Refusal { statement: statement.into(), reason })
    };
    (refusal.clone(), refusal)
}

fn refused_pragma(sql: &str) -> Option<Refusal> {
    let name = pragma_name(sql).map(str::to_ascii_uppercase);
    if name.as_deref().is_some_and(|name| name == OPTIMIZE || PRAGMAS.contains(&name)) {
        return None;
    }
    let statement = name.map_or(Cow::Borrowed("PRAGMA"), |name| format!("PRAGMA {name}").into());
    Some(Refusal { statement, reason: SESSION })
}

/// The unquoted name of a pragma at the start of the text.
fn pragma_name(sql: &str) -> Option<&str> {
    let blank = [' ', '\t', '\r', '\n'];
    let rest = sql.trim_start_matches(blank);
    let rest = rest.get(6..).filter(|_| rest.as_bytes()[..6].eq_ignore_ascii_case(b"PRAGMA"))?;
    let named = rest.trim_start_matches(blank);
    let name = word(named).filter(|_| named.len() < rest.len())?;
    if name.eq_ignore_ascii_case("main") || name.eq_ignore_ascii_case("temp") {
        let rest = named[name.len()..].trim_start_matches(is_space).strip_prefix('.');
        return rest.and_then(|rest| word(rest.trim_start_matches(is_space))).or(Some(name));
    }
    Some(name)
}

fn word(text: &str) -> Option<&str> {
    let end = text.bytes().take_while(|&byte| byte.is_ascii_alphanumeric() || byte == b'_').count();
    (end > 0).then(|| &text[..end])
}
