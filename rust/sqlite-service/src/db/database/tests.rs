use std::fmt::Write;
use std::path::PathBuf;
use std::{env, fs, process};

use edge_service::error::Kind;
use serde::Deserialize;

use super::*;

/// A database in a folder of its own.
fn with_database(name: &str, work: impl FnOnce(&mut Database)) {
    let folder: PathBuf = env::temp_dir().join(format!("{name}-{}", process::id()));
    fs::create_dir(&folder).unwrap();
    let memory = Arc::new(MemoryBudget::new(1_000_000_000));
    let mut database = Database::open(&folder.join("main.db"), Access::Create, 1024, memory).unwrap();
    work(&mut database);
    drop(database);
    fs::remove_dir_all(folder).unwrap();
}

fn query(database: &mut Database, sql: &str) -> Result<String, Failure> {
    let statement = sql::parse(format!(r#"{{"sql": "{sql}"}}"#).as_bytes())?;
    match database.run(&statement, true, false)? {
        (StatementResult::Rows(json), _) => Ok(String::from_utf8(json).unwrap()),
        (StatementResult::Affected { .. }, _) => panic!("no rows"),
    }
}

#[test]
fn a_transaction_that_a_statement_has_left_open_is_rolled_back() {
    with_database("left-open", |database| {
        query(database, "CREATE TABLE t (a)").unwrap();
        database.control("BEGIN").unwrap();
        let Err(Failure::Call(error)) = query(database, "INSERT INTO t VALUES (1)") else { panic!("no error") };
        assert!(error.kind == Kind::Invalid && error.message.contains("left a transaction open"));
        assert!(!database.is_in_transaction());
        query(database, "INSERT INTO t VALUES (2)").unwrap();
        assert!(query(database, "SELECT a FROM t").unwrap().contains(r#""rows":[[2]]"#));
    });
}

#[test]
fn a_database_attaches_no_file_but_those_without_a_name() {
    with_database("attach", |database| {
        let error = database.control("ATTACH 'other.db' AS other").unwrap_err();
        assert!(matches!(error, Failure::Sqlite { message, .. } if message.contains("not authorized")));
        query(database, "VACUUM").unwrap();
    });
}

#[test]
fn nobody_chooses_what_is_called_as_a_tokenizer() {
    with_database("tokenizer", |database| {
        for (sql, parameter) in
            [("fts3_tokenizer(?)", r#""simple""#), ("FTS3_TOKENIZER('x', ?)", r#"{"blob": "QUFBQQ=="}"#)]
        {
            let payload = format!(r#"{{"sql": "SELECT {sql}", "params": [{parameter}]}}"#);
            let statement = sql::parse(payload.as_bytes()).unwrap();
            let error = database.run(&statement, true, false).map(drop).unwrap_err();
            assert!(matches!(error, Failure::Sqlite { message, .. } if message.contains("not authorized")));
        }
        query(database, "CREATE VIRTUAL TABLE texts USING fts4(a, tokenize=porter)").unwrap();
    });
}

#[test]
fn tables_within_those_of_full_text_search_are_not_written() {
    with_database("shadow", |database| {
        query(database, "CREATE VIRTUAL TABLE texts USING fts5(a)").unwrap();
        query(database, "INSERT INTO texts VALUES ('one')").unwrap();
        let error = query(database, "UPDATE texts_data SET block = randomblob(9)").unwrap_err();
        assert!(matches!(error, Failure::Sqlite { message, .. } if message.contains("may not be modified")));
        query(database, "INSERT INTO texts (texts) VALUES ('rebuild')").unwrap();
        assert!(query(database, "SELECT a FROM texts WHERE texts MATCH 'one'").unwrap().contains("one"));
    });
}

#[test]
fn statements_are_kept_within_a_limit_of_memory() {
    with_database("prepared", |database| {
        let used = || unsafe { rusqlite::ffi::sqlite3_memory_used() };
        let before = used();
        for number in 0..200 {
            query(database, &format!("SELECT {number} IN ({}1)", "1,".repeat(10_000))).unwrap();
        }
        assert!(used() - before < 50_000_000, "{}", used() - before);
    });
}

#[test]
fn reads_share_a_transaction_until_another_statement() {
    with_database("snapshot", |database| {
        query(database, "CREATE TABLE t (a)").unwrap();
        database.share_snapshots();
        query(database, "SELECT * FROM t").unwrap();
        assert!(database.has_snapshot && !database.connection.is_autocommit() && !database.is_in_transaction());
        query(database, "INSERT INTO t VALUES (1)").unwrap();
        assert!(!database.has_snapshot && database.connection.is_autocommit());
        query(database, "SELECT * FROM t").unwrap();
        database.end_snapshot().unwrap();
        assert!(database.connection.is_autocommit());
    });
}

#[test]
fn long_texts_are_written_in_pieces() {
    with_database("pieces", |database| {
        for (written, text) in [("'é'", "é"), ("'😀'", "😀"), ("char(1)", "\u{1}"), ("char(34)", "\"")] {
            let json = query(database, &format!("SELECT replace(hex(zeroblob(50000)), '00', {written})")).unwrap();
            let json: serde_json::Value = serde_json::from_str(&json).unwrap();
            assert_eq!(json["rows"][0][0].as_str().unwrap(), text.repeat(50_000));
        }
    });
}

#[derive(Deserialize)]
struct Cases {
    statements: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    sql: String,
    params: usize,
    in_transaction: bool,
    /// Why it is refused.
    error: Option<String>,
}

#[test]
fn statements_are_refused_as_ever() {
    let cases: Cases = serde_json::from_str(include_str!("../../../../../test/golden/sqlite-statements.json")).unwrap();
    with_database("golden", |database| {
        query(database, "CREATE TABLE a (b, c)").unwrap();
        let mut differences = String::new();
        for Case { sql, params, in_transaction, error } in cases.statements {
            let given =
                sql::Statement { sql: sql.as_str().into(), verb: Verb::of(&sql), params: vec![], param_count: params };
            let outcome = match prepare(&database.connection, &given, in_transaction) {
                Ok((statement, _)) if statement.parameters() == params => None,
                Ok((statement, _)) => Some(miscounted(statement.parameters() as f64, params)),
                Err(Failure::Call(error)) => Some(error.message),
                Err(Failure::Sqlite { message, .. }) => Some(message),
            };
            if outcome != error {
                writeln!(differences, "{sql:?} ({in_transaction}): {outcome:?}, not {error:?}").unwrap();
            }
        }
        assert!(differences.is_empty(), "\n{differences}");
    });
}

#[test]
fn a_savepoint_of_a_transaction_is_refused_outside_of_one() {
    with_database("savepoint", |database| {
        let statement = sql::parse(br#"{"sql": "SAVEPOINT a"}"#).unwrap();
        database.control("BEGIN").unwrap();
        database.run(&statement, false, true).unwrap();
        database.control("COMMIT").unwrap();
        let Err(Failure::Call(error)) = database.run(&statement, false, false).map(drop) else { panic!("no error") };
        assert!(error.kind == Kind::Invalid && error.message.starts_with("SAVEPOINT is not possible here"));
        assert!(!database.is_in_transaction());
    });
}

#[test]
fn what_sqlite_does_for_itself_is_not_refused() {
    with_database("inner", |database| {
        for module in ["fts3", "fts4", "fts5", "rtree"] {
            query(database, &format!("CREATE VIRTUAL TABLE a_{module} USING {module}(a, b, c)")).unwrap();
        }
        // Its tables are not connected yet: preparing a statement does that.
        let path = PathBuf::from(database.connection.path().unwrap());
        let mut other = Database::open(&path, Access::Write, 1024, database.memory.clone()).unwrap();
        for module in ["fts3", "fts4", "fts5", "rtree"] {
            query(&mut other, &format!("INSERT INTO a_{module} VALUES (1, 2, 3)")).unwrap();
        }
        assert!(query(&mut other, "SELECT * FROM pragma_journal_mode").unwrap().contains("wal"));
        query(&mut other, "VACUUM").unwrap();
        query(&mut other, "PRAGMA optimize").unwrap();
    });
}
