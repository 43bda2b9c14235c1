//! Caches, storages and mail: what each method sends, and what it makes of the answer.

use super::server::{failure, ok};
use super::{exchange, json_of};
use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::services::{FileKind, ListedObject, ObjectInfo};

const BINARY: &[u8] = &[0, 255, 10, 13, 128];

#[test]
fn handles_are_structs_with_a_pool_id() {
    let pool_id = || "db".to_string();
    let _ = (DbPool { pool_id: pool_id() }, RedisPool { pool_id: pool_id() }, MongoPool { pool_id: pool_id() });
    let _ = (MemcachedPool { pool_id: pool_id() }, ObjectStore { pool_id: pool_id() });
    let _ = (FtpPool { pool_id: pool_id() }, EmailPool { pool_id: pool_id() }, HttpPool { pool_id: pool_id() });
    assert_eq!(format!("{:?}", DbPool::new("a").clone()), "DbPool { pool_id: \"a\" }");
}

#[test]
fn redis_gets_a_text_bytes_or_none_and_refuses_bytes_as_a_text() {
    let found = || ok(json!({"found": true}), "wört");
    let (head, payload, value) = exchange(found, |pool| RedisPool::new(pool).get("a\"b"));
    assert_eq!((head, payload.len()), (json!({"op": "get", "args": {"key": "a\"b"}}), 0));
    assert_eq!(value.unwrap().as_deref(), Some("wört"));
    let missing = || ok(json!({"found": false}), b"");
    assert_eq!(exchange(missing, |pool| RedisPool::new(pool).get("a")).2.unwrap(), None);
    let binary = || ok(json!({"found": true}), BINARY);
    assert_eq!(exchange(binary, |pool| RedisPool::new(pool).get_bytes("a")).2.unwrap().unwrap(), BINARY);
    let error = exchange(binary, |pool| RedisPool::new(pool).get("a")).2.unwrap_err();
    assert!(matches!(&error, HandlerError::RedisError(text) if text.contains("not text in UTF-8")), "{error}");
}

#[test]
fn redis_sets_a_value_with_its_time_and_condition_and_tells_whether_it_was_set() {
    let yes = || ok(json!(true), b"");
    let no = || ok(json!(false), b"");
    let (head, payload, _) = exchange(yes, |pool| RedisPool::new(pool).set("k", "v").unwrap());
    assert_eq!((head, payload), (json!({"op": "set", "args": {"key": "k"}}), b"v".to_vec()));
    let (head, payload, _) = exchange(yes, |pool| RedisPool::new(pool).setex("k", BINARY, 60).unwrap());
    assert_eq!((head, payload), (json!({"op": "set", "args": {"key": "k", "ttl_ms": 60000}}), BINARY.to_vec()));
    let (head, _, was_set) = exchange(no, |pool| RedisPool::new(pool).set_nx("k", String::new()).unwrap());
    assert_eq!((head, was_set), (json!({"op": "set", "args": {"key": "k", "only_if": "absent"}}), false));
    let (head, _, was_set) = exchange(yes, |pool| RedisPool::new(pool).set_nx_ex("k", 1, vec![1]).unwrap());
    let args = json!({"key": "k", "ttl_ms": 1000, "only_if": "absent"});
    assert_eq!((head, was_set), (json!({"op": "set", "args": args}), true));
}

#[test]
fn methods_of_redis_send_their_commands_and_read_the_answers() {
    let one = || ok(JsonValue::Null, b"1");
    let zero = || ok(JsonValue::Null, b"0");
    let none = || ok(JsonValue::Null, b"-2");
    let text = || ok(JsonValue::Null, b"\"v\"");
    let pairs = || ok(JsonValue::Null, b"[\"a\",\"1\",\"b\",\"2\"]");
    let sent = |payload: Vec<u8>| json_of(&payload);
    let (head, payload, was_there) = exchange(one, |pool| RedisPool::new(pool).del("k").unwrap());
    assert_eq!((head, sent(payload), was_there), (json!({"op": "command"}), json!(["DEL", "k"]), true));
    assert!(!exchange(zero, |pool| RedisPool::new(pool).exists("k").unwrap()).2);
    assert_eq!(exchange(one, |pool| RedisPool::new(pool).incr("k").unwrap()).2, 1);
    let (_, payload, _) = exchange(one, |pool| RedisPool::new(pool).incr_by("k", -5).unwrap());
    assert_eq!(sent(payload), json!(["INCRBY", "k", "-5"]));
    let (_, payload, was_there) = exchange(one, |pool| RedisPool::new(pool).expire("k", 5).unwrap());
    assert_eq!((sent(payload), was_there), (json!(["EXPIRE", "k", "5"]), true));
    assert_eq!(exchange(none, |pool| RedisPool::new(pool).ttl("k").unwrap()).2, None);
    assert_eq!(exchange(one, |pool| RedisPool::new(pool).ttl("k").unwrap()).2, Some(1));
    assert_eq!(exchange(text, |pool| RedisPool::new(pool).hget("k", "f").unwrap()).2.as_deref(), Some("v"));
    let (_, payload, is_new) = exchange(one, |pool| RedisPool::new(pool).hset("k", "f", "v").unwrap());
    assert_eq!((sent(payload), is_new), (json!(["HSET", "k", "f", {"base64": "dg=="}]), true));
    let all = exchange(pairs, |pool| RedisPool::new(pool).hgetall("k").unwrap()).2;
    assert_eq!(all, [("a".to_owned(), "1".to_owned()), ("b".to_owned(), "2".to_owned())].into());
    let (_, payload, _) = exchange(text, |pool| RedisPool::new(pool).command(["PING"]).unwrap());
    assert_eq!(sent(payload), json!(["PING"]));
    assert_eq!(RedisPool::bytes_of(&json!("a")), Some(b"a".to_vec()));
    assert_eq!(RedisPool::bytes_of(&json!({"base64": "/w=="})), Some(vec![255]));
    assert_eq!(RedisPool::bytes_of(&json!(1)), None);
}

#[test]
fn methods_of_memcached_send_their_arguments_and_read_the_answers() {
    let yes = || ok(json!(true), b"");
    let found = || ok(json!({"found": true}), "v");
    let five = || ok(json!(5), b"");
    let none = || ok(JsonValue::Null, b"");
    let head_of = |op: &str, args: JsonValue| json!({"op": op, "args": args});
    let (head, _, value) = exchange(found, |pool| MemcachedPool::new(pool).get("k").unwrap());
    assert_eq!((head, value.as_deref()), (head_of("get", json!({"key": "k"})), Some("v")));
    let (head, payload, _) = exchange(yes, |pool| MemcachedPool::new(pool).set("k", BINARY).unwrap());
    assert_eq!((head, payload), (head_of("set", json!({"key": "k"})), BINARY.to_vec()));
    let (head, ..) = exchange(yes, |pool| MemcachedPool::new(pool).setex("k", 9, "v").unwrap());
    assert_eq!(head, head_of("set", json!({"key": "k", "ttl_seconds": 9})));
    let (head, _, stored) = exchange(yes, |pool| MemcachedPool::new(pool).add("k", None, "v").unwrap());
    assert_eq!((head, stored), (head_of("add", json!({"key": "k"})), true));
    let (head, ..) = exchange(yes, |pool| MemcachedPool::new(pool).replace("k", Some(1), "v").unwrap());
    assert_eq!(head, head_of("replace", json!({"key": "k", "ttl_seconds": 1})));
    assert!(exchange(yes, |pool| MemcachedPool::new(pool).delete("k").unwrap()).2);
    let (head, _, sum) = exchange(five, |pool| MemcachedPool::new(pool).incr("k", 2).unwrap());
    assert_eq!((head, sum), (head_of("incr", json!({"key": "k", "by": 2})), Some(5)));
    assert_eq!(exchange(none, |pool| MemcachedPool::new(pool).decr("k", 2).unwrap()).2, None);
    let (head, ..) = exchange(five, |pool| MemcachedPool::new(pool).incr_or_set("k", 2, 1, Some(3)).unwrap());
    assert_eq!(head, head_of("incr", json!({"key": "k", "by": 2, "initial": 1, "ttl_seconds": 3})));
    let error = exchange(|| failure("backend", "too large"), |pool| MemcachedPool::new(pool).get("k")).2.unwrap_err();
    assert!(matches!(error, HandlerError::CacheError(_)), "{error}");
}

#[test]
fn methods_of_object_storages_send_their_arguments_and_read_the_answers() {
    let head_of = |op: &str, args: JsonValue| json!({"op": op, "args": args});
    let info = || {
        let info = json!({"found": true, "size": 5, "content_type": "image/png", "etag": "e", "last_modified": "t"});
        ok(info, BINARY)
    };
    let missing = || ok(json!({"found": false}), b"");
    let (head, _, content) = exchange(info, |pool| ObjectStore::new(pool).get("a/b").unwrap());
    assert_eq!((head, content.as_deref()), (head_of("get", json!({"key": "a/b"})), Some(BINARY)));
    assert!(matches!(
        exchange(info, |pool| ObjectStore::new(pool).get_string("a")).2,
        Err(HandlerError::StorageError(_))
    ));
    let (head, _, known) = exchange(info, |pool| ObjectStore::new(pool).head("a").unwrap());
    let expected = ObjectInfo {
        size: 5,
        content_type: Some("image/png".into()),
        etag: Some("e".into()),
        last_modified: Some("t".into()),
    };
    assert_eq!((head, known), (head_of("head", json!({"key": "a"})), Some(expected)));
    assert!(!exchange(missing, |pool| ObjectStore::new(pool).exists("a").unwrap()).2);
    let stored = || ok(json!({"etag": "e", "size": 5}), b"");
    let (head, payload, answer) = exchange(stored, |pool| ObjectStore::new(pool).put("a", BINARY).unwrap());
    assert_eq!((head, payload, answer.size), (head_of("put", json!({"key": "a"})), BINARY.to_vec(), 5));
    let (head, ..) = exchange(stored, |pool| ObjectStore::new(pool).put_with_type("a", "x", "text/x").unwrap());
    assert_eq!(head, head_of("put", json!({"key": "a", "content_type": "text/x"})));
    let deleted = || ok(json!({"deleted": true}), b"");
    assert!(exchange(deleted, |pool| ObjectStore::new(pool).delete("a").unwrap()).2);
    let listed = || ok(JsonValue::Null, br#"[{"key": "a", "size": 1, "last_modified": "t", "etag": "e"}]"#);
    let (head, _, list) = exchange(listed, |pool| ObjectStore::new(pool).list("p/").unwrap());
    let expected = ListedObject { key: "a".into(), size: 1, last_modified: Some("t".into()), etag: Some("e".into()) };
    assert_eq!((head, list), (head_of("list", json!({"prefix": "p/"})), vec![expected]));
    let (head, ..) = exchange(listed, |pool| ObjectStore::new(pool).list_at_most("p/", 3).unwrap());
    assert_eq!(head, head_of("list", json!({"prefix": "p/", "limit": 3})));
}

#[test]
fn methods_of_file_servers_send_their_paths_and_read_the_answers() {
    let head_of = |op: &str, path: &str| json!({"op": op, "args": {"path": path}});
    let found = || ok(json!({"found": true}), BINARY);
    let (head, _, content) = exchange(found, |pool| FtpPool::new(pool).get("a/b").unwrap());
    assert_eq!((head, content.as_deref()), (head_of("get", "a/b"), Some(BINARY)));
    let stored = || ok(json!({"size": 5}), b"");
    let (head, payload, size) = exchange(stored, |pool| FtpPool::new(pool).put("a", BINARY).unwrap());
    assert_eq!((head, payload, size), (head_of("put", "a"), BINARY.to_vec(), 5));
    let listed = || {
        let entries = json!([{"name": "a", "kind": "file", "size": 5, "modified": "t"},
            {"name": "b", "kind": "folder", "size": 0, "modified": null}]);
        ok(JsonValue::Null, entries.to_string())
    };
    let (head, _, entries) = exchange(listed, |pool| FtpPool::new(pool).list("").unwrap());
    assert_eq!(head, head_of("list", ""));
    assert_eq!((entries[0].kind, entries[0].size), (FileKind::File, 5));
    assert_eq!((entries[1].kind, entries[1].modified.as_deref()), (FileKind::Folder, None));
    let deleted = || ok(json!({"deleted": false}), b"");
    assert!(!exchange(deleted, |pool| FtpPool::new(pool).delete("a").unwrap()).2);
}

#[test]
fn a_mail_is_sent_with_all_that_its_message_has() {
    let sent = || ok(json!({"message_id": "<1>", "accepted": ["a@b"], "rejected": []}), b"");
    let (head, payload, answer) = exchange(sent, |pool| EmailPool::new(pool).send("a@b", "s", "t").unwrap());
    assert_eq!(head, json!({"op": "send"}));
    assert_eq!(json_of(&payload), json!({"to": ["a@b"], "subject": "s", "text": "t"}));
    assert_eq!((answer.message_id.as_str(), answer.accepted.len()), ("<1>", 1));
    let (_, payload, _) = exchange(sent, |pool| EmailPool::new(pool).send_html("a@b", "s", "<p>").unwrap());
    assert_eq!(json_of(&payload), json!({"to": ["a@b"], "subject": "s", "html": "<p>"}));
    let (_, payload, _) = exchange(sent, |pool| EmailPool::new(pool).send_from("f@b", "a@b", "s", "t").unwrap());
    let from = json!({"address": "f@b"});
    assert_eq!(json_of(&payload), json!({"to": ["a@b"], "from": from, "subject": "s", "text": "t"}));
    let message = EmailMessage::new("s")
        .from_named("F", "f@b")
        .to("a@b")
        .to("c@b")
        .cc("d@b")
        .bcc("e@b")
        .reply_to("r@b")
        .text("t")
        .html("<p>")
        .attach("x.bin", "application/x", BINARY);
    let (_, payload, _) = exchange(sent, |pool| EmailPool::new(pool).send_message(&message).unwrap());
    let expected = json!({
        "to": ["a@b", "c@b"], "cc": ["d@b"], "bcc": ["e@b"], "reply_to": "r@b",
        "from": {"address": "f@b", "name": "F"}, "subject": "s", "text": "t", "html": "<p>",
        "attachments": [{"filename": "x.bin", "content_type": "application/x", "base64": "AP8KDYA="}],
    });
    assert_eq!(json_of(&payload), expected);
    let refused = exchange(|| failure("backend", "no"), |pool| EmailPool::new(pool).send("a", "s", "t")).2;
    assert!(matches!(refused, Err(HandlerError::EmailError(_))));
}

#[test]
fn the_descriptions_of_sdk_0_1_are_still_read_and_written() {
    use rust_edge_gateway_sdk::services::{EnvVars, ServiceConfig};
    let text = r#"{"service_type":"redis","connection":"redis://cache","options":{"db":"1"}}"#;
    let config: ServiceConfig = serde_json::from_str(text).unwrap();
    assert_eq!((config.service_type.as_str(), config.connection.as_str()), ("redis", "redis://cache"));
    assert_eq!(serde_json::to_string(&config).unwrap(), text);
    let variables = EnvVars { vars: config.options };
    assert_eq!(variables.get("db").map(String::as_str), Some("1"));
    assert_eq!(variables.get("none"), None);
}

#[test]
fn http_requests_are_sent_as_they_were_built_and_their_answers_read() {
    let found = || {
        let header = |name: &str, value: &str| json!({"name": name, "value": value});
        let headers =
            [header("Content-Type", "application/json"), header("Set-Cookie", "a"), header("set-cookie", "b")];
        ok(json!({"status": 200, "headers": headers}), "{\"a\":1}")
    };
    let head_of = |method: &str, path: &str, headers: JsonValue| json!({"op": "request", "args": {"method": method, "path": path, "headers": headers}});
    let json_header = json!([{"name": "Content-Type", "value": "application/json"}]);
    let (head, payload, answer) = exchange(found, |pool| HttpPool::new(pool).get("/a").unwrap());
    assert_eq!((head, payload.len()), (head_of("GET", "/a", json!([])), 0));
    assert_eq!((answer.status, answer.is_success(), answer.text().unwrap()), (200, true, "{\"a\":1}"));
    assert_eq!((answer.header("content-type"), answer.header("x")), (Some("application/json"), None));
    assert_eq!(answer.header_all("SET-COOKIE"), ["a", "b"]);
    assert_eq!(answer.json::<JsonValue>().unwrap(), json!({"a": 1}));
    let wrong = answer.json::<Vec<u8>>().unwrap_err();
    assert!(matches!(&wrong, HandlerError::HttpError(text) if text.contains("status 200")), "{wrong}");

    let (head, payload, _) = exchange(found, |pool| HttpPool::new(pool).post_json("/a", &json!([1])).unwrap());
    assert_eq!((head, json_of(&payload)), (head_of("POST", "/a", json_header.clone()), json!([1])));
    let (head, payload, _) = exchange(found, |pool| HttpPool::new(pool).put_json("/a", "text").unwrap());
    assert_eq!((head, json_of(&payload)), (head_of("PUT", "/a", json_header), json!("text")));
    let (head, ..) = exchange(found, |pool| HttpPool::new(pool).delete("/a").unwrap());
    assert_eq!(head, head_of("DELETE", "/a", json!([])));

    let request = HttpRequest::patch("/a?x=1").query("y z", "ä&").header("X-\"Q\"", "1").body(BINARY);
    let (head, payload, _) = exchange(found, |pool| HttpPool::new(pool).send(&request).unwrap());
    let headers = json!([{"name": "X-\"Q\"", "value": "1"}]);
    assert_eq!(head, head_of("PATCH", "/a?x=1&y+z=%C3%A4%26", headers));
    assert_eq!(payload, BINARY);
    let form = HttpRequest::new("POST", "/f").query("a", "b").form(&[("c", "d e")]);
    let (head, payload, _) = exchange(found, |pool| HttpPool::new(pool).send(&form).unwrap());
    let headers = json!([{"name": "Content-Type", "value": "application/x-www-form-urlencoded"}]);
    assert_eq!((head, payload), (head_of("POST", "/f?a=b", headers), b"c=d+e".to_vec()));

    let missing = || ok(json!({"status": 404, "headers": []}), BINARY);
    let answer = exchange(missing, |pool| HttpPool::new(pool).get("/a").unwrap()).2;
    assert!(matches!(answer.text(), Err(HandlerError::HttpError(_))));
    let error = answer.error_for_status().unwrap_err();
    assert!(matches!(&error, HandlerError::HttpError(text) if text.contains("status 404")), "{error}");
    let refused = exchange(|| failure("invalid", "no"), |pool| HttpPool::new(pool).get("/a")).2;
    assert!(matches!(refused, Err(HandlerError::HttpError(_))));
}
