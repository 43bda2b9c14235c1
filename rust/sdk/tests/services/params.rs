//! Every form of parameters, and what becomes of each value.

use super::server::ok;
use super::{exchange, json_of};
use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::services::{IntoParams, Params, ToParam};
use std::borrow::Cow;

/// The text of the parameters as sent.
fn sent(params: impl IntoParams) -> String {
    let answer = || ok(json!({"rows_affected": 0, "last_insert_id": null}), b"");
    let (_, payload, result) = exchange(answer, |pool| DbPool::new(pool).execute("X", params));
    result.unwrap();
    let text = String::from_utf8(payload).unwrap();
    text.strip_prefix("{\"sql\":\"X\",\"params\":").unwrap().strip_suffix('}').unwrap().to_owned()
}

#[test]
fn a_call_without_parameters_sends_an_empty_list() {
    assert_eq!(sent(()), "[]");
    let (unit, empty) = (&(), &[]);
    assert_eq!(sent(unit), "[]");
    assert_eq!(sent(empty), "[]");
    assert_eq!(sent([]), "[]");
    assert_eq!(sent(Vec::<String>::new()), "[]");
    assert_eq!(sent(json!([])), "[]");
    assert_eq!(sent(JsonValue::Null), "[]");
}

#[test]
fn lists_of_one_type_are_sent_item_by_item() {
    let (one, two, long, vec) = (&["a"], &["a", "b"], &[1i64], &vec![Some(1), None]);
    assert_eq!(sent(one), r#"["a"]"#);
    assert_eq!(sent(["a"]), r#"["a"]"#);
    assert_eq!(sent(two), r#"["a","b"]"#);
    assert_eq!(sent([1, 2]), "[1,2]");
    assert_eq!(sent(long), "[1]");
    assert_eq!(sent(&[1.5, -0.5][..]), "[1.5,-0.5]");
    assert_eq!(sent(vec!["a"]), r#"["a"]"#);
    assert_eq!(sent(vec), "[1,null]");
    assert_eq!(sent(vec![String::from("a")]), r#"["a"]"#);
    assert_eq!(sent([&String::from("a")]), r#"["a"]"#);
    assert_eq!(sent(vec![json!(1), json!("a"), json!(null)]), r#"[1,"a",null]"#);
    assert_eq!(sent(&[json!({"a": 1})]), r#"[{"json":"{\"a\":1}"}]"#);
    assert_eq!(sent([[1u8, 2]]), r#"[{"blob":"AQI="}]"#);
    // Bytes are integers where they are the whole list.
    assert_eq!(sent(vec![1u8, 2]), "[1,2]");
    assert_eq!(sent([7; 32]).matches('7').count(), 32);
}

#[test]
fn lists_of_mixed_types_are_sent_in_their_order() {
    let bytes = [0u8, 255];
    assert_eq!(
        sent((1, "a", 2.5, true, None::<i64>, vec![0u8, 255], &bytes[..], b"\0\xff", bytes)),
        r#"[1,"a",2.5,true,null,{"blob":"AP8="},{"blob":"AP8="},{"blob":"AP8="},{"blob":"AP8="}]"#
    );
    let pair = &(1, "a");
    assert_eq!(sent(pair), r#"[1,"a"]"#);
    assert_eq!(sent((1,)), "[1]");
    assert_eq!(sent((0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)), "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]");
    let dynamic: &[&dyn ToParam] = &[&1, &"a", &None::<bool>];
    assert_eq!(sent(dynamic), r#"[1,"a",null]"#);
    let grown: Vec<Box<dyn ToParam>> = vec![Box::new(1), Box::new("a")];
    assert_eq!(sent(&grown), r#"[1,"a"]"#);
    assert_eq!(sent(json!([1, "a", [2], null])), r#"[1,"a",{"json":"[2]"},null]"#);
    assert_eq!(sent(&json!([1])), "[1]");
}

#[test]
fn each_value_is_sent_without_loss() {
    assert_eq!(sent((i64::MIN, i64::MAX, u64::MAX)), {
        r#"[{"int":"-9223372036854775808"},{"int":"9223372036854775807"},{"int":"18446744073709551615"}]"#
    });
    assert_eq!(sent([(1i64 << 53) - 1, 1 - (1 << 53)]), "[9007199254740991,-9007199254740991]");
    assert_eq!(sent([1i64 << 53, -(1 << 53)]), r#"[{"int":"9007199254740992"},{"int":"-9007199254740992"}]"#);
    assert_eq!(sent((json!(u64::MAX), json!(i64::MIN))), {
        r#"[{"int":"18446744073709551615"},{"int":"-9223372036854775808"}]"#
    });
    assert_eq!(sent((i8::MIN, i16::MIN, i32::MIN, u8::MAX, u16::MAX, u32::MAX)), {
        "[-128,-32768,-2147483648,255,65535,4294967295]"
    });
    assert_eq!(sent((1usize, -1isize)), "[1,-1]");
    assert_eq!(sent((2.0, 1e300, 0.1f32, -0.0)), "[2.0,1e+300,0.10000000149011612,-0.0]");
    assert_eq!(sent((false, 'ä', (), "")), r#"[false,"ä",null,""]"#);
    assert_eq!(sent(("\"\\\n\0",)), r#"["\"\\\n\u0000"]"#);
    assert_eq!(sent((Cow::Borrowed("a"), Cow::<[u8]>::Owned(vec![1]))), r#"["a",{"blob":"AQ=="}]"#);
    assert_eq!(sent((Some("a"), Some(&String::from("b")), &&1, Some(vec![1u8]))), r#"["a","b",1,{"blob":"AQ=="}]"#);
    assert_eq!(sent((json!({"a": [1, null]}), json!("{}"))), r#"[{"json":"{\"a\":[1,null]}"},"{}"]"#);
    assert_eq!(sent((vec![0u8; 0],)), r#"[{"blob":""}]"#);
}

#[test]
fn blobs_keep_every_byte() {
    for length in 0..300 {
        let bytes: Vec<u8> = (0..length).map(|n| (n * 7 % 256) as u8).collect();
        let params: JsonValue = serde_json::from_str(&sent((&bytes,))).unwrap();
        let decoded = RedisPool::bytes_of(&json!({"base64": params[0]["blob"]}));
        assert_eq!(decoded.unwrap(), bytes);
    }
}

struct Isbn(String);

impl ToParam for Isbn {
    fn add_to(&self, params: &mut Params) {
        self.0.add_to(params);
    }
}

#[test]
fn types_of_the_handler_are_sent_as_it_says() {
    assert_eq!(sent((Isbn("3".into()), &Isbn("4".into()), None::<Isbn>)), r#"["3","4",null]"#);
}

#[test]
fn what_cannot_be_sent_is_refused_before_any_call() {
    let db = DbPool { pool_id: "never called".to_string() };
    for (error, text) in [
        (db.query("X", (1, f64::NAN)), "parameter 2: NaN and infinite numbers cannot be sent"),
        (db.query("X", [f32::INFINITY]), "parameter 1: NaN and infinite numbers cannot be sent"),
        (db.query("X", json!({"a": 1})), "a list of parameters given as JSON must be an array"),
    ] {
        let error = error.unwrap_err();
        assert!(matches!(error, HandlerError::DatabaseError(_)), "{error}");
        assert!(error.to_string().contains(text), "{error}");
        assert!(error.to_string().contains("the pool \"never called\": "), "{error}");
    }
    let redis = RedisPool { pool_id: "never called".to_string() };
    assert!(matches!(redis.command(("SET", true)), Err(HandlerError::RedisError(_))));
    assert!(matches!(redis.command(("SET", None::<i32>)), Err(HandlerError::RedisError(_))));
}

#[test]
fn arguments_of_redis_are_texts_and_bytes() {
    let answer = || ok(JsonValue::Null, b"null");
    let (head, payload, reply) = exchange(answer, |pool| {
        RedisPool::new(pool).command(("SET", "k", 1, u64::MAX, 1.5, vec![255u8], json!({"a": 1}), 'c'))
    });
    assert_eq!(head, json!({"op": "command"}));
    let args = json!(["SET", "k", "1", "18446744073709551615", "1.5", {"base64": "/w=="}, "{\"a\":1}", "c"]);
    assert_eq!(json_of(&payload), args);
    assert_eq!(reply.unwrap(), JsonValue::Null);
}
