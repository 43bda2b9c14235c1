//! Calls of handlers.
use super::{parse, scan::scan};

/// A statement that is sent reads the same when it is read again: nothing in it hides what is refused.
pub fn calls(bytes: &[u8]) {
    for in_transaction in [false, true] {
        // Errors are what a handler gets.
        let _ = parse(bytes, in_transaction);
    }
    // A payload with a zero byte is refused as such.
    let Some(sql) = std::str::from_utf8(bytes).ok().filter(|sql| !sql.contains('\0')) else { return };
    let scanned = scan(sql);
    let again = scan(&scanned.sql);
    assert_eq!(scanned.refused.is_some(), again.refused.is_some(), "{sql:?} is sent as {:?}", scanned.sql);
}
