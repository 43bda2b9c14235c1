//! What a fuzzer calls: statements of handlers, which SQLite itself reads, too. `scripts/fuzz.mjs` builds and runs it.
use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::Connection;

use crate::db::{prepare, restrict};
use crate::sql;

/// Looks at the work of SQLite come after so many of its steps, and so often before a statement is ended.
const STEPS: i32 = 1_000;
const LOOKS: u32 = 50;
const TEMPORARY: &str = "SELECT count(*) FROM temp.sqlite_schema";
const OTHER_FILES: &str = "SELECT count(*) FROM pragma_database_list WHERE name NOT IN ('main', 'temp')";

thread_local! {
    static DATABASE: RefCell<Connection> = RefCell::new(open());
}

fn open() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch("CREATE TABLE t (a, b)").unwrap();
    let looks = AtomicU32::new(0);
    connection.progress_handler(STEPS, Some(move || looks.fetch_add(1, Ordering::Relaxed) > LOOKS)).unwrap();
    restrict(&connection).unwrap();
    connection
}

/// A statement that is let through reaches no other file, makes nothing temporary, and leaves no transaction open; in a
/// transaction, that stays open. The first byte says whether there is one.
pub fn run(bytes: &[u8]) {
    let Some((&first, bytes)) = bytes.split_first() else { return };
    let in_transaction = first == b'1';
    let _ = sql::parse(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let given = sql::Statement { sql: text.into(), verb: sql::Verb::of(text), params: Vec::new(), param_count: 0 };
    DATABASE.with_borrow_mut(|database| {
        if in_transaction {
            database.execute_batch("BEGIN").unwrap();
        }
        run_statement(database, &given, in_transaction);
        // The limit of steps, which may be used up, is taken away.
        database.progress_handler(0, None::<fn() -> bool>).unwrap();
        let others: i64 = database.query_row(OTHER_FILES, [], |row| row.get(0)).unwrap();
        assert_eq!(others, 0, "{text:?} reaches another file");
        let temporary: i64 = database.query_row(TEMPORARY, [], |row| row.get(0)).unwrap();
        assert_eq!(temporary, 0, "{text:?} makes something temporary");
        // Errors such as a full disk end one.
        assert!(in_transaction || database.is_autocommit(), "{text:?} leaves a transaction open");
        *database = open();
    });
}

fn run_statement(database: &Connection, given: &sql::Statement, in_transaction: bool) {
    let Ok((mut statement, _)) = prepare(database, given, in_transaction) else { return };
    let Ok(mut run) = statement.run(&[]) else { return };
    while let Ok(true) = run.step() {}
}
