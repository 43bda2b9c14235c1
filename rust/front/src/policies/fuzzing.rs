//! Policies as JSON, and requests that are checked by one.
use std::mem::MaybeUninit;
use std::sync::{Arc, LazyLock};

use serde_json::{Value, json};

use super::validate::{Validator, fuzzing::check};
use super::{CompiledPolicies, Evaluation, Policies, Texts};
use crate::request::{MAX_HEADERS, read_head};

const HEAD: &[u8] = b"GET /a/b?x=1&y=a%20b HTTP/1.1\r\nHost: a.test\r\nCookie: a=b\r\nOrigin: https://a.test\r\n\
    Authorization: Bearer a.b.c\r\nX-Key: k\r\n\r\n";

/// Policies that can be read can be evaluated for any request.
pub fn policies(bytes: &[u8]) {
    let Ok(compiled) = serde_json::from_slice::<CompiledPolicies>(bytes) else { return };
    let policies = Policies::interned(compiled, &Texts::default(), &"a.test".into());
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let head = read_head(HEAD, &mut space).unwrap_or_else(|refusal| panic!("{}", refusal.message));
    // The second time after it would have been waited for.
    for is_unprepared in [false, true] {
        let mut evaluation = Evaluation::default();
        evaluation.gave_up_schema = is_unprepared;
        policies.evaluate(&head, &[("id", "b")], std::net::Ipv4Addr::LOCALHOST.into(), &mut evaluation, false);
    }
}

static VALIDATOR: LazyLock<Arc<Validator>> = LazyLock::new(|| {
    let shape = |schema: usize, types: &[&str]| json!({ "schema": schema, "types": types });
    let parameter = |source: &str, name: &str, style: &str, schema: usize, types: &[&str]| {
        json!({
            "in": source, "name": name, "required": false, "style": style, "explode": true, "allowEmpty": false,
            "isJson": false, "shape": shape(schema, types),
        })
    };
    let schemas: Value = json!([
        { "type": ["object"], "properties": { "a": 1, "b": 2, "c": 3, "d": 0 }, "additionalProperties": 4,
          "required": ["a"], "maxProperties": 9 },
        { "type": ["integer"], "minimum": 1, "maximum": 100, "multipleOf": 3 },
        { "type": ["string"], "pattern": ["^[a-z]{1,9}$", "^[a-z]{1,9}$", 20], "maxLength": 9, "format": "date-time" },
        { "type": ["array"], "items": 1, "uniqueItems": true, "maxItems": 9, "contains": 1 },
        { "anyOf": [1, 2, 3], "not": 5 },
        { "const": ["a"] },
    ]);
    let parameters = json!([
        parameter("query", "a", "form", 1, &["integer"]),
        parameter("query", "b", "form", 2, &["string"]),
        parameter("query", "c", "spaceDelimited", 3, &["array"]),
        parameter("query", "d", "deepObject", 0, &["object"]),
        parameter("header", "X-A", "simple", 3, &["array"]),
        parameter("cookie", "a", "form", 1, &["integer"]),
    ]);
    let body = json!({ "required": true, "types": [
        { "type": "application/json", "read": "json", "shape": shape(0, &["object"]) },
        { "type": "application/x-www-form-urlencoded", "read": "form", "shape": shape(0, &["object"]) },
        { "type": "*/*", "read": "text", "shape": shape(2, &["string"]) },
    ] });
    let policy = json!({ "mode": "enforce", "parameters": parameters, "body": body, "schemas": schemas });
    Arc::new(Validator::new(policy.to_string().into(), "a.test".into()))
});

/// Any request is let through or refused. The first byte chooses a type; a line is the query, one headers, the rest the
/// body.
pub fn validate(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else { return };
    let kind = ["application/json", "application/x-www-form-urlencoded", "text/plain"][usize::from(kind) % 3];
    let mut parts = rest.splitn(3, |&byte| byte == b'\n');
    let [query, header, body] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let head = [
        &b"POST /a?"[..],
        query,
        b" HTTP/1.1\r\nHost: a.test\r\nContent-Type: ",
        kind.as_bytes(),
        b"\r\nX-A: ",
        header,
        b"\r\nCookie: ",
        header,
        b"\r\n\r\n",
    ]
    .concat();
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    if let Ok(head) = read_head(&head, &mut space) {
        check(&VALIDATOR, &head, body);
    }
}
