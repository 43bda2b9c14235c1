//! What a fuzzer calls: statements of handlers, which SQLite itself reads, too. `scripts/fuzz.mjs` builds and runs it.
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

use crate::sql;

/// Looks at the work of SQLite come after so many of its steps, and so often before a statement is ended.
const STEPS: i32 = 1_000;
const LOOKS: u32 = 50;

struct Database {
    connection: Connection,
    looks: Arc<AtomicU32>,
    reached: Arc<AtomicBool>,
}

thread_local! {
    static DATABASE: RefCell<Database> = RefCell::new(open());
}

fn open() -> Database {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE t (a, b)").unwrap();
    let (looks, reached) = (Arc::<AtomicU32>::default(), Arc::<AtomicBool>::default());
    let (own_looks, own_reached) = (looks.clone(), reached.clone());
    connection.progress_handler(STEPS, Some(move || own_looks.fetch_add(1, Ordering::Relaxed) > LOOKS)).unwrap();
    let authorize = move |context: AuthContext<'_>| {
        if matches!(context.action, AuthAction::Attach { .. } | AuthAction::Detach { .. }) {
            own_reached.store(true, Ordering::Relaxed);
        }
        Authorization::Allow
    };
    connection.authorizer(Some(authorize)).unwrap();
    Database { connection, looks, reached }
}

/// A statement that is let through has as many placeholders as SQLite says, reaches no other file, and leaves no
/// transaction open.
pub fn run(bytes: &[u8]) {
    let _ = sql::parse(bytes, true);
    // A payload with a zero byte is refused as such.
    let Some(text) = std::str::from_utf8(bytes).ok().filter(|text| !text.contains('\0')) else { return };
    let Some((statement, placeholders)) = sql::let_through(text) else { return };
    DATABASE.with_borrow_mut(|database| {
        database.looks.store(0, Ordering::Relaxed);
        {
            let Ok(mut prepared) = database.connection.prepare(&statement) else { return };
            assert_eq!(prepared.parameter_count() as f64, placeholders, "{text:?} is run as {statement:?}");
            let mut rows = prepared.raw_query();
            while let Ok(Some(_)) = rows.next() {}
        }
        assert!(!database.reached.load(Ordering::Relaxed), "{text:?} reaches another file");
        assert!(database.connection.is_autocommit(), "{text:?} leaves a transaction open");
        *database = open();
    });
}
