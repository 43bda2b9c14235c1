//! Refuses statements that would change the state of a connection, because all handlers of a service share connections:
//! transaction control, which has its own operations, and session settings, which would outlive the call. This prevents
//! accidents only: functions and procedures can have the same effects, so the state of a session is checked, too.

use edge_service::sql::{SESSION, TRANSACTION};

const COPY: &str = "it moves data outside of statements; use INSERT and SELECT";

/// The first words of statements that are refused, and why.
const REFUSED: [(&str, &str); 15] = [
    ("BEGIN", TRANSACTION),
    ("START", TRANSACTION),
    ("COMMIT", TRANSACTION),
    ("END", TRANSACTION),
    ("ROLLBACK", TRANSACTION),
    ("ABORT", TRANSACTION),
    ("SET", SESSION),
    ("RESET", SESSION),
    ("DISCARD", SESSION),
    ("LISTEN", SESSION),
    ("UNLISTEN", SESSION),
    ("PREPARE", SESSION),
    ("EXECUTE", SESSION),
    ("DEALLOCATE", SESSION),
    ("COPY", COPY),
];

/// Number of words needed to recognise a statement.
pub const WORDS: usize = 3;

/// Why a statement is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    statement: &'static str,
    reason: &'static str,
}

impl Refusal {
    pub fn message(&self) -> String {
        format!("{} is not possible here: {}", self.statement, self.reason)
    }
}

/// Whether a statement is refused outside of transactions, and in one.
///
/// `words` are the first words of the statement outside of strings and comments, in upper case.
pub fn refusals(words: &[String]) -> (Option<Refusal>, Option<Refusal>) {
    let word = |index: usize| words.get(index).map_or("", String::as_str);
    let savepoint = match word(0) {
        "SAVEPOINT" => Some("SAVEPOINT"),
        "RELEASE" => Some("RELEASE"),
        // ROLLBACK [WORK | TRANSACTION] TO [SAVEPOINT] name
        "ROLLBACK" if word(1) == "TO" || word(2) == "TO" => Some("ROLLBACK"),
        _ => None,
    };
    if let Some(statement) = savepoint {
        return (Some(Refusal { statement, reason: TRANSACTION }), None);
    }
    let refusal =
        REFUSED.iter().find(|(first, _)| *first == word(0)).map(|&(statement, reason)| Refusal { statement, reason });
    let is_of_transaction = word(0) == "SET" && matches!(word(1), "LOCAL" | "CONSTRAINTS" | "TRANSACTION");
    (refusal, if is_of_transaction { None } else { refusal })
}
