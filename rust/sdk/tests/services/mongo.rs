//! Documents, filters and updates as Extended JSON.

use super::exchange;
use super::server::{ok, Answer};
use rust_edge_gateway_sdk::prelude::*;

/// Makes a call; the operation, the payload as text, and what came of it.
fn sent<T>(answer: fn() -> Answer, call: impl FnOnce(MongoPool) -> Result<T, HandlerError>) -> (String, String, T) {
    let (head, payload, outcome) = exchange(answer, |pool| call(MongoPool::new(pool)));
    if head["op"] != "command" {
        assert_eq!(head["args"], json!({"collection": "pets"}));
    }
    (head["op"].as_str().unwrap().to_owned(), String::from_utf8(payload).unwrap(), outcome.unwrap())
}

fn documents() -> Answer {
    ok(JsonValue::Null, r#"[{"_id": {"$oid": "65"}, "n": 9223372036854775807}]"#)
}

fn null() -> Answer {
    ok(JsonValue::Null, "null")
}

fn updated() -> Answer {
    ok(JsonValue::Null, r#"{"matched": 2, "modified": 1, "upserted_id": null}"#)
}

#[derive(Serialize)]
struct ByTwo {
    z: i8,
    a: i8,
}

#[test]
fn methods_that_find_send_their_filter_and_options_and_read_the_documents() {
    let options = FindOptions::new().descending("z").ascending("a").skip(1).limit(2).projection(json!({"_id": 0}));
    let (op, payload, found) = sent(documents, |mongo| mongo.find("pets", json!({"kind": "cat"}), options));
    assert_eq!(op, "find");
    assert_eq!(payload, r#"{"filter":{"kind":"cat"},"sort":{"z":-1,"a":1},"projection":{"_id":0},"skip":1,"limit":2}"#);
    assert_eq!(found, [json!({"_id": {"$oid": "65"}, "n": i64::MAX})]);
    let (op, payload, found) = sent(null, |mongo| mongo.find_one("pets", json!({})));
    assert_eq!((op.as_str(), payload.as_str(), found), ("find_one", r#"{"filter":{}}"#, None));
    let (op, payload, _) = sent(null, |mongo| mongo.find_first("pets", json!({}), FindOptions::new().ascending("a")));
    assert_eq!((op.as_str(), payload.as_str()), ("find_one", r#"{"filter":{},"sort":{"a":1}}"#));
    let (op, _, n) = sent(|| ok(JsonValue::Null, "3"), |mongo| mongo.count("pets", json!({})));
    assert_eq!((op.as_str(), n), ("count", 3));
    let (op, payload, _) = sent(documents, |mongo| mongo.aggregate("pets", [json!({"$sort": 1})]));
    assert_eq!((op.as_str(), payload.as_str()), ("aggregate", r#"{"pipeline":[{"$sort":1}]}"#));
    let (_, payload, _) = sent(documents, |mongo| mongo.find("pets", ByTwo { z: 1, a: 2 }, FindOptions::new()));
    assert_eq!(payload, r#"{"filter":{"z":1,"a":2}}"#);
}

#[test]
fn methods_that_insert_send_their_documents_and_read_the_ids() {
    let one = || ok(JsonValue::Null, r#"{"inserted_id": 5}"#);
    let (op, payload, id) = sent(one, |mongo| mongo.insert_one("pets", json!({"name": "Tom"})));
    assert_eq!((op.as_str(), payload.as_str()), ("insert_one", r#"{"document":{"name":"Tom"}}"#));
    assert_eq!(id, json!(5));
    let many = || ok(JsonValue::Null, r#"{"inserted_ids": [5, 6]}"#);
    let (op, payload, ids) = sent(many, |mongo| mongo.insert_many("pets", &[json!({}), json!({})]));
    assert_eq!((op.as_str(), payload.as_str()), ("insert_many", r#"{"documents":[{},{}]}"#));
    assert_eq!(ids, [json!(5), json!(6)]);
}

#[test]
fn integers_that_a_double_does_not_hold_are_sent_as_long_ones_or_refused() {
    let one = || ok(JsonValue::Null, r#"{"inserted_id": 5}"#);
    let document = json!({"a": i64::MIN, "b": (1i64 << 53) - 1, "c": [1i64 << 53], "d": 1.5});
    let (_, payload, _) = sent(one, |mongo| mongo.insert_one("pets", document));
    assert_eq!(
        payload,
        r#"{"document":{"a":{"$numberLong":"-9223372036854775808"},"b":9007199254740991,"c":[{"$numberLong":"9007199254740992"}],"d":1.5}}"#
    );
    let keys = std::collections::BTreeMap::from([(u64::MAX, i64::MAX)]);
    let (_, payload, _) = sent(one, |mongo| mongo.insert_one("pets", keys));
    assert_eq!(payload, r#"{"document":{"18446744073709551615":{"$numberLong":"9223372036854775807"}}}"#);
    let error = MongoPool::new("never called").insert_one("pets", json!({"a": u64::MAX})).unwrap_err().to_string();
    assert!(error.contains("document: 18446744073709551615 is too large for an integer of MongoDB"), "{error}");
}

#[test]
fn methods_that_change_documents_send_their_filter_and_change_and_read_what_was_done() {
    let change = || json!({"$set": {"a": 1}});
    let (op, payload, result) = sent(updated, |mongo| mongo.update_one("pets", json!({}), change()));
    assert_eq!((op.as_str(), payload.as_str()), ("update_one", r#"{"filter":{},"update":{"$set":{"a":1}}}"#));
    assert_eq!((result.matched, result.modified, result.upserted_id), (2, 1, None));
    let (op, payload, _) = sent(updated, |mongo| mongo.upsert_one("pets", json!({}), change()));
    assert_eq!(op, "update_one");
    assert!(payload.ends_with(r#","upsert":true}"#));
    assert_eq!(sent(updated, |mongo| mongo.update_many("pets", json!({}), change())).0, "update_many");
    let (op, payload, _) = sent(updated, |mongo| mongo.replace_one("pets", json!({}), json!({"a": 1})));
    assert_eq!((op.as_str(), payload.as_str()), ("replace_one", r#"{"filter":{},"replacement":{"a":1}}"#));
    let (_, payload, _) = sent(updated, |mongo| mongo.replace_or_insert_one("pets", json!({}), json!({})));
    assert_eq!(payload, r#"{"filter":{},"replacement":{},"upsert":true}"#);
    let options = UpdateOptions::new().upsert().return_before();
    let (op, payload, _) = sent(null, |mongo| mongo.find_one_and_update("pets", json!({}), change(), options));
    assert_eq!(op, "find_one_and_update");
    assert!(payload.ends_with(r#","upsert":true,"return":"before"}"#));
    let deleted = || ok(JsonValue::Null, r#"{"deleted": 4}"#);
    let (op, payload, n) = sent(deleted, |mongo| mongo.delete_many("pets", json!({"a": 1})));
    assert_eq!((op.as_str(), payload.as_str(), n), ("delete_many", r#"{"filter":{"a":1}}"#, 4));
    assert_eq!(sent(deleted, |mongo| mongo.delete_one("pets", json!({}))).0, "delete_one");
}

#[test]
fn commands_keep_their_name_first() {
    let more = json!({"filter": {}, "a": 1});
    let (op, payload, _) = sent(null, |mongo| mongo.command("find", "pets", more));
    assert_eq!((op.as_str(), payload.as_str()), ("command", r#"{"command":{"find":"pets","a":1,"filter":{}}}"#));
    let (_, payload, _) = sent(null, |mongo| mongo.command("ping", 1, json!({})));
    assert_eq!(payload, r#"{"command":{"ping":1}}"#);
    assert!(MongoPool::new("never called").command("ping", 1, 2).is_err());
}
