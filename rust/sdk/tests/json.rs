//! Reading, writing and `json!`, compared with serde_json.

use rust_edge_gateway_sdk::prelude::*;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

#[derive(Debug, PartialEq, Clone, Serialize, Deserialize)]
struct Everything {
    flag: bool,
    small: i8,
    large: u64,
    negative: i64,
    ratio: f64,
    short: f32,
    letter: char,
    text: String,
    maybe: Option<u32>,
    nothing: (),
    pair: (u8, String),
    list: Vec<Option<i32>>,
    map: BTreeMap<String, Vec<u8>>,
    numbered: BTreeMap<u16, bool>,
    shape: Shape,
    shapes: Vec<Shape>,
    keyed: BTreeMap<Plain, u8>,
    new: New,
    boxed: Box<Option<Everything>>,
    #[serde(default)]
    absent: u8,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    renamed: Option<String>,
    #[serde(flatten)]
    rest: HashMap<String, JsonValue>,
}

#[derive(Debug, PartialEq, Clone, Serialize, Deserialize)]
enum Shape {
    Unit,
    New(u8),
    Tuple(u8, String),
    Struct { a: u8, b: Option<String> },
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Plain {
    FirstOne,
    SecondOne,
}

#[derive(Debug, PartialEq, Clone, Serialize, Deserialize)]
struct New(i16);

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
enum Tagged {
    A { x: i32 },
    B { y: Vec<u8> },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Text(String),
    Pair { a: u8 },
}

fn everything() -> Everything {
    Everything {
        flag: true,
        small: -5,
        large: u64::MAX,
        negative: i64::MIN,
        ratio: 0.1,
        short: 1.25,
        letter: 'é',
        text: "a \"quoted\" \\ \n\u{1}🦀".into(),
        maybe: None,
        nothing: (),
        pair: (7, "seven".into()),
        list: vec![Some(1), None],
        map: BTreeMap::from([("k".into(), vec![1, 2])]),
        numbered: BTreeMap::from([(7, true)]),
        shape: Shape::Struct { a: 1, b: None },
        shapes: vec![Shape::Unit, Shape::New(2), Shape::Tuple(3, "t".into())],
        keyed: BTreeMap::from([(Plain::FirstOne, 1), (Plain::SecondOne, 2)]),
        new: New(-3),
        boxed: Box::new(None),
        absent: 0,
        renamed: Some("r".into()),
        rest: HashMap::from([("more".to_owned(), json!({"deep": [1, 2.5, null]}))]),
    }
}

fn read<T: DeserializeOwned>(text: &str) -> Result<T, HandlerError> {
    Request { body: Some(text.to_owned()), ..Request::default() }.json()
}

fn written<T: Serialize>(value: T) -> String {
    Response::ok(value).body.unwrap()
}

/// Both directions, against serde_json.
fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) {
    let text = serde_json::to_string(&value).unwrap();
    assert_eq!(written(&value), text);
    assert_eq!(read::<T>(&text).unwrap(), value);
    assert_eq!(json!(value), serde_json::to_value(&value).unwrap());
}

#[test]
fn types_go_there_and_back_as_with_serde_json() {
    let mut outer = everything();
    outer.boxed = Box::new(Some(everything()));
    round_trip(outer);
    round_trip(Tagged::A { x: -1 });
    round_trip(Tagged::B { y: vec![1, 255] });
    round_trip(vec![Untagged::Number(1), Untagged::Text("t".into()), Untagged::Pair { a: 9 }]);
    round_trip(HashMap::from([(true, 1)]));
    round_trip(HashMap::from([(-7i64, "n".to_owned())]));
    round_trip((1u8, 2u16, "three".to_owned(), [4u32, 5], ()));
    round_trip(i128::from(i64::MIN));
    round_trip(json!({"z": 1, "a": [true, null, {"b": "c"}], "f": 1e300}));
    round_trip(serde_json::Map::from_iter([("k".to_owned(), json!(1))]));
    round_trip::<Option<Vec<Vec<String>>>>(Some(vec![vec![], vec!["x".into()]]));
    round_trip(std::time::Duration::from_millis(1500));
    round_trip("127.0.0.1".parse::<std::net::IpAddr>().unwrap());
}

#[test]
fn numbers_that_are_not_finite_are_null() {
    assert_eq!(written(f64::NAN), "null");
    assert_eq!(written([f32::INFINITY]), "[null]");
    assert_eq!(json!(f64::NAN), JsonValue::Null);
}

#[test]
fn what_serde_json_refuses_is_refused() {
    for (text, what) in [
        ("{\"x\": 1}", "Invalid body: expected an integer from -32768 to 32767, got object"),
        ("300000", "Invalid body: expected an integer from -32768 to 32767, got integer `300000`"),
        ("1.5", "floating point `1.5`"),
        ("\"1\"", "got string \"1\""),
        ("null", "got null"),
        ("[1,2]", "got array"),
        ("1 2", "The body is not valid JSON: trailing"),
        ("{\"a\":1", "EOF"),
    ] {
        assert!(serde_json::from_str::<New>(text).is_err(), "{text}");
        let error = read::<New>(text).unwrap_err().to_string();
        assert!(error.starts_with("Bad request: ") && error.contains(what), "{error}");
    }
    assert!(read::<(u8, u8)>("[1,2,3]").is_err());
    assert!(read::<(u8, u8)>("[1]").is_err());
    assert!(read::<Shape>("\"New\"").is_err());
    assert!(read::<Shape>("\"Other\"")
        .unwrap_err()
        .to_string()
        .contains("\"Other\" is not one of \"Unit\", \"New\", \"Tuple\", \"Struct\""));
    assert!(read::<Shape>("null")
        .unwrap_err()
        .to_string()
        .contains("expected one of \"Unit\", \"New\", \"Tuple\", \"Struct\", got null"));
    assert!(read::<Shape>("{\"New\":1,\"Unit\":null}").is_err());
    assert!(read::<Tagged>("{\"kind\":\"C\"}").is_err());
    assert!(read::<Untagged>("[]").unwrap_err().to_string().contains("did not match any variant"));
    assert!(read::<HashMap<u8, u8>>("{\"x\":1}").is_err());
    assert!(read::<JsonValue>(&"[".repeat(1000)).is_err());
}

#[test]
fn duplicate_and_unknown_fields_are_noticed_when_asked_for() {
    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Strict {
        a: u8,
    }
    assert_eq!(
        read::<Strict>("{\"a\":1,\"a\":2}").unwrap_err().to_string(),
        "Bad request: Invalid body: the field a appears twice"
    );
    assert!(read::<Strict>("{\"a\":1,\"b\":2}")
        .unwrap_err()
        .to_string()
        .contains("\"b\" is not a field; expected \"a\""));
}

#[test]
fn a_failing_serialize_is_reported() {
    struct Never;
    impl Serialize for Never {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("never"))
        }
    }
    let response = Response::ok([Never]);
    assert_eq!(response.status, 500);
    assert!(response.body.unwrap().contains("never"));
}

/// The same tokens through both macros.
macro_rules! same {
    ($($json:tt)+) => {
        assert_eq!(json!($($json)+), serde_json::json!($($json)+));
    };
}

#[test]
fn the_macro_accepts_what_that_of_serde_json_accepts() {
    let name = "n".to_owned();
    let list = vec![1, 2];
    let maybe: Option<&str> = None;
    const KEY: &str = "constant";
    same!(null);
    same!(true);
    same!(-1);
    same!(1.5);
    same!("text");
    same!(name);
    same!([]);
    same!({});
    same!([1]);
    same!([1,]);
    same!([null]);
    same!([null,]);
    same!([null, true, false, [], {}, [1, [2, [3]]], {"a": null}, -1, name, 1 + 2, list.len()]);
    same!([[1], [2],]);
    same!([{"a": 1}, {"b": 2},]);
    same!({"a": null});
    same!({"a": null,});
    same!({"a": 1, "b": [1, 2, {"c": null}], "d": {"e": {}}, "f": -1.5e3,});
    same!({ "list": list, "name": name, "maybe": maybe, "sum": list.iter().sum::<i32>() });
    same!({ name.clone(): 1 });
    same!({ KEY: 1, "x": 2 });
    same!({ (name.clone() + "!"): 1 });
    same!({ (KEY): [1] });
    same!({ format!("{}-{}", 1, 2): null, "b": {"c": 1} });
    same!({ "closure": list.iter().map(|x| x + 1).collect::<Vec<_>>(), "if": if list.is_empty() { 1 } else { 2 } });
    same!({ "match": match list.len() { 0 => "none", _ => "some" }, "after": true });
    same!({ "generic": HashMap::<String, u8>::new(), "turbofish": "7".parse::<u8>().unwrap() });
    same!({ "twice": 1, "twice": 2 });
    same!({ "struct": New(3), "tuple": (1, "a"), "ref": &name, "array": ([1u8; 3]), "char": 'c', "unit": () });
    same!({ "nested": [{"deep": [[[{"deeper": null}]]]}] });
    let value = json!({"borrowed": name});
    assert_eq!(value["borrowed"], name);
    let inner: JsonValue = json!([value, json!({"x": json!(null)})]);
    assert_eq!(inner[1]["x"], JsonValue::Null);
}

#[test]
#[should_panic(expected = "json!: key must be a string")]
fn the_macro_panics_on_what_cannot_be_json() {
    let _ = json!(HashMap::from([(vec![1], 1)]));
}
