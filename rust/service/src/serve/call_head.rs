//! The heads of frames from handlers; `docs/SERVICE-PROTOCOL.md` describes them. Handlers may be written without the
//! SDK, so nothing is taken on trust. Errors say how the handler does not keep to the protocol.
use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Integers of the other processes are exact up to this one.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

/// A call of a service, as a handler asks for it.
#[derive(Debug, Deserialize)]
pub struct CallHead<'a> {
    #[serde(borrow)]
    pub pool: Cow<'a, str>,
    #[serde(borrow)]
    pub op: Cow<'a, str>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
    /// Milliseconds; `None` leaves it to the actor host.
    #[serde(default, deserialize_with = "some_integer")]
    pub deadline_ms: Option<u64>,
    /// Whether it belongs to the open transaction of the connection.
    #[serde(default)]
    pub tx: bool,
}

impl CallHead<'_> {
    /// Says what is wrong with the arguments: no operation has any.
    pub fn problem_of_args(&self) -> Option<String> {
        let kind = match self.args.map_or(b'{', |args| args.get().as_bytes().first().copied().unwrap_or(b'{')) {
            b'{' | b'n' => return None,
            b'[' => "an array",
            b'"' => "a string",
            b't' | b'f' => "a boolean",
            _ => "a number",
        };
        Some(format!("args: must be an object, not {kind}"))
    }
}

/// Reads the head of a call.
pub fn parse_call(json: &[u8]) -> Result<CallHead<'_>, &'static str> {
    // The usual case. What else is valid, and the reason when it is not, is found slowly.
    match serde_json::from_slice::<CallHead>(json) {
        Ok(head) if head.deadline_ms != Some(0) => Ok(head),
        _ => parse_slowly(json),
    }
}

/// Reads the token of the first frame of a connection.
pub fn parse_token(json: &[u8]) -> Result<String, &'static str> {
    let token = members(json)?.remove("token").and_then(|token| serde_json::from_str(token.get()).ok());
    token.ok_or("the first frame of a connection needs a token")
}

/// Members may come more than once, of which the last counts, and integers as `1e3`.
fn parse_slowly(json: &[u8]) -> Result<CallHead<'_>, &'static str> {
    let members = members(json)?;
    let text = |name| members.get(name).and_then(|member| serde_json::from_str::<String>(member.get()).ok());
    let (Some(pool), Some(op)) = (text("pool"), text("op")) else {
        return Err("a call needs pool and op, both texts");
    };
    let deadline_ms = match members.get("deadline_ms") {
        None => None,
        Some(member) => {
            let number = serde_json::from_str::<f64>(member.get()).unwrap_or(0.0);
            if !(1.0..=MAX_SAFE_INTEGER).contains(&number) || number.fract() != 0.0 {
                return Err("deadline_ms must be a positive integer");
            }
            Some(number as u64)
        }
    };
    let tx = members.get("tx").map_or(Ok(false), |member| serde_json::from_str(member.get()));
    let tx = tx.map_err(|_| "tx must be true or false")?;
    Ok(CallHead { pool: pool.into(), op: op.into(), args: members.get("args").copied(), deadline_ms, tx })
}

fn members(json: &[u8]) -> Result<HashMap<String, &RawValue>, &'static str> {
    let value: &RawValue = serde_json::from_slice(json).map_err(|_| "a head must be JSON")?;
    match value.get().as_bytes().first() {
        Some(b'{') => serde_json::from_str(value.get()).map_err(|_| "a head must be JSON"),
        // An object without members that have names.
        Some(b'[') => Ok(HashMap::new()),
        _ => Err("a head must be a JSON object"),
    }
}

/// Unlike an `Option`, refuses null.
fn some_integer<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    u64::deserialize(deserializer).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let head = parse_call(br#"{"pool":"m\u0061in","op":"query","args":null,"deadline_ms":10,"tx":true,"x":[]}"#);
        let head = head.unwrap();
        assert_eq!((&*head.pool, &*head.op, head.deadline_ms, head.tx), ("main", "query", Some(10), true));
        assert_eq!(head.problem_of_args(), None);
        let head = parse_call(br#"{"pool":"a","pool":"b","op":"c","deadline_ms":1e3}"#).unwrap();
        assert_eq!((&*head.pool, head.deadline_ms, head.tx), ("b", Some(1000), false));
    }

    #[test]
    fn problems_are_named() {
        let problem = |json: &str| parse_call(json.as_bytes()).unwrap_err();
        assert_eq!(problem(""), "a head must be JSON");
        assert_eq!(problem("{} {}"), "a head must be JSON");
        assert_eq!(problem("null"), "a head must be a JSON object");
        assert_eq!(problem("[]"), "a call needs pool and op, both texts");
        assert_eq!(problem(r#"{"pool":"a","op":1}"#), "a call needs pool and op, both texts");
        for deadline in ["0", "-1", "1.5", "null", "\"1\"", "9007199254740993e3"] {
            let json = format!(r#"{{"pool":"a","op":"b","deadline_ms":{deadline}}}"#);
            assert_eq!(problem(&json), "deadline_ms must be a positive integer", "{deadline}");
        }
        assert_eq!(problem(r#"{"pool":"a","op":"b","tx":null}"#), "tx must be true or false");
    }

    #[test]
    fn arguments_are_an_object() {
        let problem = |args: &str| {
            let json = format!(r#"{{"pool":"a","op":"b","args": {args}}}"#);
            parse_call(json.as_bytes()).unwrap().problem_of_args()
        };
        assert_eq!(problem("{}"), None);
        assert_eq!(problem("[1]"), Some("args: must be an object, not an array".to_owned()));
        assert_eq!(problem("-1"), Some("args: must be an object, not a number".to_owned()));
    }

    #[test]
    fn tokens_are_read() {
        assert_eq!(parse_token(br#"{"token":"a"}"#).as_deref(), Ok("a"));
        assert_eq!(parse_token(br#"{"token":1}"#), Err("the first frame of a connection needs a token"));
        assert_eq!(parse_token(b"[]"), Err("the first frame of a connection needs a token"));
    }
}
