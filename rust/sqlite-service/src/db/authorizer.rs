//! Refuses statements that would change the state of a connection, because all handlers of a service share connections,
//! and those that reach other files: SQLite asks about each thing that a statement would do, however it is written.
//! This prevents accidents; what is left open is checked after each call, too.
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use edge_service::error::{CallError, Kind};
use edge_service::sql::{SESSION, TRANSACTION};
use rusqlite::{Connection, ffi};

use super::failure::Failure;
use super::prepared::StatementCache;
use super::statement::{Code, PreparedStatement};
use crate::sql::{self, Verb, after_blanks};

const FILE: &str = "a service is one file";
/// They come before those of the file in the statements of all others on the connection.
const TEMPORARY: &str = "CREATE TEMP";
/// The schema of temporary objects.
const TEMP: &str = "temp";
/// A function with the addresses of tokenizers.
const TOKENIZERS: &str = "fts3_tokenizer";

/// Pragmas that return information or change only the content of the file.
const PRAGMAS: [&str; 21] = [
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
    "OPTIMIZE",
];
/// A pragma that may be read. Tables of FTS3 do so while a statement about them is prepared.
const PAGE_SIZE: &str = "PAGE_SIZE";

/// What was found about a statement of a handler while it is prepared. What the functions and virtual tables of SQLite
/// prepare while it runs, they do for themselves.
#[derive(Default)]
struct Review {
    in_transaction: bool,
    needs_transaction: bool,
    /// Why it is refused.
    refusal: Option<String>,
}

thread_local! {
    static REVIEW: RefCell<Option<Review>> = const { RefCell::new(None) };
}

/// Prepares the one statement of a text, unless it is refused. Returns whether it may run in a transaction only: it is
/// not kept then, so that it is prepared again for the next call.
pub fn prepare(
    connection: &Connection,
    given: &sql::Statement,
    in_transaction: bool,
) -> Result<(PreparedStatement, bool), Failure> {
    // It attaches the file when it runs, and a temporary one would not be refused.
    if given.verb == Verb::Vacuum && given.sql.to_ascii_uppercase().contains("INTO") {
        return Err(invalid(refusal("VACUUM INTO", FILE)));
    }
    REVIEW.set(Some(Review { in_transaction, ..Review::default() }));
    let prepared = PreparedStatement::prepare(connection, &given.sql, StatementCache::keeps(&given.sql));
    let Review { needs_transaction, refusal, .. } = REVIEW.take().unwrap_or_default();
    if let Some(refusal) = refusal {
        return Err(invalid(refusal));
    }
    match prepared.map_err(|code| Failure::of(connection, code, false))? {
        (None, _) => Err(invalid("the text has no statement".to_owned())),
        // SQLite reads the first only.
        (_, rest) if !after_blanks(rest).is_empty() => {
            Err(invalid("the text has more than one statement: send one at a time".to_owned()))
        }
        (Some(statement), _) => Ok((statement, needs_transaction)),
    }
}

pub fn invalid(text: String) -> Failure {
    CallError::new(Kind::Invalid, text).into()
}

fn refusal(statement: &str, reason: &str) -> String {
    format!("{statement} is not possible here: {reason}")
}

impl Review {
    /// Whether SQLite may do this for the statement.
    fn allows(&mut self, action: c_int, first: &str, second: Option<&str>, schema: Option<&str>) -> bool {
        let refused = match action {
            ffi::SQLITE_TRANSACTION => refusal(first, TRANSACTION),
            ffi::SQLITE_SAVEPOINT if self.in_transaction => {
                self.needs_transaction = true;
                return true;
            }
            ffi::SQLITE_SAVEPOINT if first == "BEGIN" => refusal("SAVEPOINT", TRANSACTION),
            ffi::SQLITE_SAVEPOINT => refusal(first, TRANSACTION),
            // Whatever is made gets a row in the table of its schema, of which SQLite asks, too.
            ffi::SQLITE_INSERT | ffi::SQLITE_CREATE_VTABLE if schema == Some(TEMP) => refusal(TEMPORARY, SESSION),
            ffi::SQLITE_ATTACH => refusal("ATTACH", FILE),
            ffi::SQLITE_DETACH => refusal("DETACH", FILE),
            ffi::SQLITE_PRAGMA => {
                let name = first.to_ascii_uppercase();
                if PRAGMAS.contains(&name.as_str()) || (name == PAGE_SIZE && second.is_none()) {
                    return true;
                }
                refusal(&format!("PRAGMA {name}"), SESSION)
            }
            _ => return true,
        };
        self.refusal = Some(refused);
        false
    }
}

/// Has SQLite ask. While statements run, too, no file is attached but one without a name, which VACUUM does; and nobody
/// calls the function that takes the address of a tokenizer, which is called.
pub fn restrict(connection: &Connection) -> Result<(), Code> {
    unsafe extern "C" fn authorize(
        _: *mut c_void,
        action: c_int,
        first: *const c_char,
        second: *const c_char,
        schema: *const c_char,
        _: *const c_char,
    ) -> c_int {
        // SAFETY: they are null, or texts that end with a zero.
        let text = |text: *const c_char| (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy());
        let (first, second, schema) = (text(first), text(second), text(schema));
        let is_safe = match action {
            ffi::SQLITE_ATTACH => first.as_deref() == Some(""),
            ffi::SQLITE_FUNCTION => second.as_deref().is_some_and(|name| name != TOKENIZERS),
            _ => true,
        };
        let allows = |review: &mut Option<Review>| {
            let first = first.as_deref().unwrap_or("");
            review.as_mut().is_none_or(|review| review.allows(action, first, second.as_deref(), schema.as_deref()))
        };
        if REVIEW.with_borrow_mut(allows) && is_safe { ffi::SQLITE_OK } else { ffi::SQLITE_DENY }
    }
    // SAFETY: the connection is open, and the function needs no data.
    let code = unsafe { ffi::sqlite3_set_authorizer(connection.handle(), Some(authorize), ptr::null_mut()) };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(Code(code)) }
}
