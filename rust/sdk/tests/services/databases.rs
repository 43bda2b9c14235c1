//! Statements, their results, and transactions.

use super::server::{calls, failure, ok, on, operations};
use super::{exchange, json_of};
use rust_edge_gateway_sdk::prelude::*;

const ROWS: &str = r#"{"columns": ["n", "name", "big", "sold", "price"],
    "rows": [[1, "a", 9223372036854775807, 1, 2.5], [0, null, -9223372036854775808, false, 3]],
    "rows_affected": 2, "last_insert_id": 7}"#;

fn rows() -> DbResult {
    let (head, payload, result) =
        exchange(|| ok(JsonValue::Null, ROWS), |pool| DbPool::new(pool).query("SELECT \"ä\"", (1, "x")));
    assert_eq!(head, json!({"op": "query"}));
    assert_eq!(json_of(&payload), json!({"sql": "SELECT \"ä\"", "params": [1, "x"]}));
    result.unwrap()
}

#[derive(Debug, PartialEq, Deserialize)]
struct Pet {
    n: u8,
    name: Option<String>,
    big: i64,
    sold: bool,
    price: f64,
}

#[test]
fn a_query_returns_rows() {
    let result = rows();
    assert_eq!(result.columns, ["n", "name", "big", "sold", "price"]);
    assert_eq!((result.rows_affected, result.last_insert_id), (2, Some(7)));
    assert_eq!(result.rows.len(), 2);
    assert_eq!(result.first().unwrap()["big"], json!(i64::MAX));
    assert_eq!(result.rows[1]["name"], JsonValue::Null);
    let second = result.rows[1].clone();
    assert_eq!(
        second,
        std::collections::HashMap::from_iter([
            ("big".to_owned(), json!(i64::MIN)),
            ("n".to_owned(), json!(0)),
            ("name".to_owned(), json!(null)),
            ("price".to_owned(), json!(3)),
            ("sold".to_owned(), json!(false)),
        ])
    );
}

#[test]
fn rows_are_written_in_the_order_of_their_columns() {
    let result = rows();
    let written = r#"[{"n":1,"name":"a","big":9223372036854775807,"sold":1,"price":2.5},{"n":0,"name":null,"big":-9223372036854775808,"sold":false,"price":3}]"#;
    assert_eq!(Response::ok(result.ordered_rows()).body.unwrap(), written);
    let whole = Response::ok(&result).body.unwrap();
    let columns = r#"["n","name","big","sold","price"]"#;
    let expected = format!(r#"{{"rows":{written},"columns":{columns},"rows_affected":2,"last_insert_id":7}}"#);
    assert_eq!(whole, expected);
    assert_eq!(serde_json::from_str::<DbResult>(&whole).unwrap(), result);
    // SDK 0.1 writes results like this one.
    let old: DbResult = serde_json::from_str(r#"{"rows":[{"b":1,"a":2}],"rows_affected":3}"#).unwrap();
    assert_eq!((old.rows[0]["b"].clone(), old.rows_affected, old.columns.len()), (json!(1), 3, 0));
    assert_eq!(Response::ok(old.ordered_rows()).body.unwrap(), r#"[{"a":2,"b":1}]"#);
    let twice = DbResult { columns: vec!["a".into(), "a".into()], ..old };
    assert_eq!(Response::ok(twice.ordered_rows()).body.unwrap(), r#"[{"a":2,"b":1}]"#);
}

#[test]
fn rows_become_structs() {
    let result = rows();
    let first = Pet { n: 1, name: Some("a".into()), big: i64::MAX, sold: true, price: 2.5 };
    let second = Pet { n: 0, name: None, big: i64::MIN, sold: false, price: 3.0 };
    assert_eq!(result.rows_as::<Pet>().unwrap(), [first, second]);
    assert_eq!(result.first_as::<Pet>().unwrap().unwrap().n, 1);
    // 0 and 1 can still be read as integers.
    assert_eq!(result.value::<i64>().unwrap(), Some(1));
    assert_eq!(result.value::<f64>().unwrap(), Some(1.0));
    assert_eq!(result.value::<bool>().unwrap(), Some(true));
    assert_eq!(result.value::<JsonValue>().unwrap(), Some(json!(1)));
    assert_eq!(DbResult::default().value::<i64>().unwrap(), None);
    assert_eq!(DbResult::default().first_as::<Pet>().unwrap(), None);
    let error = result.rows_as::<std::collections::HashMap<String, Option<bool>>>().unwrap_err().to_string();
    assert!(error.starts_with("Database error: row 1 does not fit: big: expected a boolean, got integer"), "{error}");
}

#[test]
fn execute_tells_what_changed() {
    let answer = || ok(json!({"rows_affected": 3, "last_insert_id": null}), b"");
    let (head, payload, changed) = exchange(answer, |pool| DbPool::new(pool).execute("DELETE FROM t", []));
    assert_eq!(head, json!({"op": "execute"}));
    assert_eq!(json_of(&payload), json!({"sql": "DELETE FROM t", "params": []}));
    assert_eq!(changed.unwrap(), 3_u64);
    let answer = || ok(json!({"rows_affected": 1, "last_insert_id": 7}), b"");
    let (.., inserted) = exchange(answer, |pool| DbPool::new(pool).execute_returning("INSERT", ["a"]));
    let inserted = inserted.unwrap();
    assert_eq!((inserted.rows_affected, inserted.last_insert_id), (1, Some(7)));
}

#[test]
fn query_as_reads_at_once() {
    let (_, _, pets) = exchange(|| ok(JsonValue::Null, ROWS), |pool| DbPool::new(pool).query_as::<Pet>("X", ()));
    assert_eq!(pets.unwrap().len(), 2);
}

#[test]
fn an_answer_that_is_none_is_an_error_that_names_the_pool() {
    for payload in ["", "{", "[]", "{\"columns\": 1}"] {
        on("no answer", move |_| ok(JsonValue::Null, payload));
        let error = DbPool::new("no answer").query("X", ()).unwrap_err().to_string();
        let expected = "Database error: the pool \"no answer\": the answer to query cannot be understood: ";
        assert!(error.starts_with(expected), "{payload}: {error}");
    }
}

/// Answers like a database, and counts nothing.
fn database(pool: &str) -> DbPool {
    on(pool, |call| match call.head["op"].as_str() {
        Some("query") => ok(JsonValue::Null, ROWS),
        Some("execute") if json_of(&call.payload)["sql"] == "FAIL" => failure("backend", "no such table"),
        Some("execute") => ok(json!({"rows_affected": 1, "last_insert_id": null}), b""),
        _ => ok(JsonValue::Null, b""),
    });
    DbPool::new(pool)
}

/// All calls of a transaction came on one connection, those in it said so.
fn assert_one_transaction(pool: &str, expected: &[&str]) {
    assert_eq!(operations(pool), expected);
    let calls = calls(pool);
    assert!(calls.iter().all(|call| call.connection == calls[0].connection));
    for call in &calls[1..] {
        assert_eq!(call.head["tx"], json!(true), "{call:?}");
    }
    assert_eq!(calls[0].head["tx"], JsonValue::Null);
}

#[test]
fn a_transaction_commits() {
    let db = database("commits");
    let n = db.transaction(|tx| -> Result<_, HandlerError> {
        tx.execute("INSERT", (1,))?;
        Ok(tx.query("SELECT", ())?.rows.len())
    });
    assert_eq!(n.unwrap(), 2);
    assert_one_transaction("commits", &["begin", "execute", "query", "commit"]);
}

#[test]
fn a_transaction_rolls_back_on_an_error_of_its_own_type() {
    #[derive(Debug)]
    enum ShopError {
        SoldOut,
        Other(HandlerError),
    }
    impl From<HandlerError> for ShopError {
        fn from(error: HandlerError) -> Self {
            ShopError::Other(error)
        }
    }
    let db = database("own error");
    let result: Result<(), ShopError> = db.transaction(|tx| {
        tx.execute("INSERT", ())?;
        Err(ShopError::SoldOut)
    });
    assert!(matches!(result, Err(ShopError::SoldOut)));
    let result: Result<(), ShopError> = db.transaction(|tx| Ok(tx.execute("FAIL", ()).map(drop)?));
    assert!(matches!(result, Err(ShopError::Other(HandlerError::DatabaseError(_)))));
    assert_eq!(operations("own error"), ["begin", "execute", "rollback", "begin", "execute", "rollback"]);
}

#[test]
fn a_transaction_rolls_back_on_panic_and_drop() {
    let db = database("panics");
    let panicked = std::panic::catch_unwind(|| {
        db.transaction(|tx| -> Result<(), HandlerError> {
            tx.execute("INSERT", ())?;
            panic!("on purpose");
        })
    });
    assert!(panicked.is_err());
    assert_one_transaction("panics", &["begin", "execute", "rollback"]);

    let db = database("dropped");
    let mut transaction = db.begin().unwrap();
    transaction.execute("INSERT", ()).unwrap();
    drop(transaction);
    assert_one_transaction("dropped", &["begin", "execute", "rollback"]);

    let db = database("by hand");
    db.begin().unwrap().rollback().unwrap();
    db.begin().unwrap().commit().unwrap();
    assert_eq!(operations("by hand"), ["begin", "rollback", "begin", "commit"]);
}

#[test]
fn a_commit_that_is_refused_is_an_error_and_leaves_nothing_open() {
    on("refused", |call| match call.head["op"].as_str() {
        Some("commit") => failure("backend", "deferred constraint"),
        Some("rollback") => failure("invalid", "there is no open transaction"),
        _ => ok(JsonValue::Null, b""),
    });
    let error = DbPool::new("refused").transaction(|_| Ok::<_, HandlerError>(())).unwrap_err();
    assert_eq!(error.to_string(), "Database error: the pool \"refused\": deferred constraint");
}

#[test]
fn a_transaction_that_cannot_begin_is_an_error() {
    on("cannot begin", |_| failure("busy", "all connections are in use"));
    let error = DbPool::new("cannot begin").transaction(|_| Ok::<_, HandlerError>(())).unwrap_err();
    assert!(matches!(error, HandlerError::ServiceBusy(_)), "{error}");
    assert_eq!(operations("cannot begin"), ["begin"]);
}

#[test]
fn two_transactions_have_a_connection_each() {
    let db = database("two");
    let (mut one, mut two) = (db.begin().unwrap(), db.begin().unwrap());
    one.execute("INSERT", ()).unwrap();
    db.execute("OUTSIDE", ()).unwrap();
    two.execute("INSERT", ()).unwrap();
    let connections: std::collections::BTreeSet<usize> = calls("two").iter().map(|call| call.connection).collect();
    assert_eq!(connections.len(), 3);
}
