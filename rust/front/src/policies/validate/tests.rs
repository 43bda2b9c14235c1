//! Hostile schemas and bodies, and what is said of ordinary ones. That outcomes are those of JSON Schema is tested over
//! HTTP.
use std::borrow::Cow;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::super::cache::Cached;
use super::compiled::BodyFormat;
use super::finish::MEMORY_LOOK;
use super::json::{Json, MAX_VALUES};
use super::problems::{Place, Problems};
use super::ready::{BodyKind, Ready, TOO_COMPLEX};
use super::schema::Schema;
use super::stop::{StopFlag, StopOnDrop};
use super::validator::REPORTS_WITHIN;
use super::{CheckSkipped, PartialCheck, Validator, Verdict, finish};
use crate::memory::{MemoryBudget, MemoryShare};
use crate::policies::Evaluation;
use crate::request::{MAX_HEADERS, read_head};
use crate::workers;

/// A body with what is to be given back.
struct Held {
    bytes: Vec<u8>,
    _held: tokio::sync::oneshot::Sender<()>,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

fn policy(schemas: Value) -> Value {
    let body = json!({ "required": true, "types": [{
        "type": "application/json", "read": "json", "shape": { "schema": 0, "types": [] },
    }] });
    json!({ "mode": "enforce", "parameters": [], "body": body, "schemas": schemas })
}

fn ready(schemas: Value) -> Ready {
    Ready::read(&policy(schemas).to_string()).unwrap()
}

fn problems(schemas: Value, body: &str) -> Vec<String> {
    let ready = ready(schemas);
    let mut problems = Problems::default();
    let media = &ready.body.as_ref().unwrap().types[0];
    if ready.check_body(media, body.as_bytes(), &mut problems, &StopFlag::default()).is_err() {
        problems.add(&Place::root("body"), TOO_COMPLEX);
    }
    let listed: Vec<Value> = serde_json::from_str(&problems.body()).unwrap();
    let text = |one: &Value| format!("{}: {}", one["place"].as_str().unwrap(), one["problem"].as_str().unwrap());
    listed.iter().map(text).collect()
}

#[test]
fn every_problem_has_its_place() {
    let schemas = json!([
        { "type": ["object"], "required": ["id"], "properties": { "id": 1, "items": 2 }, "additionalProperties": 4 },
        { "type": ["integer"], "minimum": 1 },
        { "type": ["array"], "items": 3, "maxItems": 2 },
        { "type": ["string"], "pattern": ["^[a-z]+$", "^[a-z]+$", 6], "maxLength": 3 },
        false,
    ]);
    let found = problems(schemas.clone(), r#"{"id":0,"items":["a","B","abcd"],"other":1}"#);
    assert_eq!(
        found,
        [
            "body.id: must be at least 1",
            "body.items: must have at most 2 items",
            "body.items.1: must match the pattern ^[a-z]+$",
            "body.items.2: must have at most 3 characters",
            "body.other: is not accepted",
        ]
    );
    assert_eq!(problems(schemas.clone(), "{}"), ["body.id: is required"]);
    assert_eq!(problems(schemas.clone(), "[]"), ["body: must be of type object"]);
    assert!(problems(schemas.clone(), "{").remove(0).starts_with("body: cannot be read as JSON: EOF"));
    assert!(problems(schemas, r#"{"id":1}"#).is_empty());
}

#[test]
fn a_pattern_that_many_schemas_and_policies_have_is_made_ready_once() {
    let pattern = json!(["^a", "^a", 2]);
    let schemas = json!([{ "pattern": pattern }, { "pattern": pattern }, { "patternProperties": [[pattern, 0]] }]);
    let policies = [ready(schemas.clone()), ready(schemas)];
    let found: Vec<_> = policies
        .iter()
        .flat_map(|ready| &ready.schemas)
        .flat_map(|schema| {
            let Schema::SchemaRules(rules) = schema else { panic!() };
            let of_text = rules.text.iter().filter_map(|text| text.pattern.as_ref());
            let of_names =
                rules.object.iter().flat_map(|object| object.pattern_properties.iter().map(|(name, _)| name));
            of_text.chain(of_names).map(Arc::as_ptr).collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(found, vec![found[0]; 6]);
}

#[test]
fn of_alternatives_the_one_for_the_type_says_what_is_wrong() {
    let schemas = json!([
        { "oneOf": [1, 2] },
        { "type": ["null"] },
        { "$ref": 3 },
        { "type": ["object"], "required": ["a"] },
    ]);
    assert_eq!(problems(schemas.clone(), "{}"), ["body.a: is required"]);
    assert_eq!(problems(schemas, "1"), ["body: fits none of the schemas of oneOf"]);
}

#[test]
fn alternatives_of_alternatives_end() {
    // Two ways at each level: 2^100 in all.
    let schemas = json!([
        { "anyOf": [1, 2] },
        { "type": ["object"], "properties": { "a": 0 } },
        { "type": ["object"], "properties": { "a": 0 }, "maxProperties": 9 },
    ]);
    let deep = |inner: &str| format!("{}{inner}{}", r#"{"a":"#.repeat(100), "}".repeat(100));
    assert_eq!(problems(schemas.clone(), &deep("1")), ["body: is too complex to be checked"]);
    assert!(problems(schemas, &deep("{}")).is_empty());
}

#[test]
fn deep_bodies_do_not_overflow_the_stack() {
    // Each level of the body is several of schemas.
    let schemas = json!([{ "$ref": 1 }, { "allOf": [2] }, { "$ref": 3 }, { "allOf": [4] }, { "items": 0 }]);
    let list = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(problems(schemas.clone(), &list(60)).is_empty());
    assert_eq!(problems(schemas.clone(), &list(120)), ["body: is too complex to be checked"]);
    assert!(problems(schemas, &list(100_000)).remove(0).contains("recursion limit"));
}

#[test]
fn equal_items_are_found_in_linear_time() {
    let schemas = json!([{ "uniqueItems": true }]);
    let list = |more: &str| format!("[{}{more}]", (0..300_000).map(|at| format!("[{at}],")).collect::<String>());
    assert!(problems(schemas.clone(), &list("1")).is_empty());
    assert_eq!(problems(schemas.clone(), &list("[7.0]")), ["body: must have no equal items, as 7 and 300000 are"]);
    assert_eq!(problems(schemas.clone(), r#"[{"a":1,"b":2},{"b":2,"a":1}]"#).len(), 1);
    assert!(problems(schemas, "[1,true,\"1\",[1],null]").is_empty());
}

#[test]
fn patterns_take_linear_time() {
    let schemas = json!([{ "pattern": ["^(?:(?:a)+)+$", "^(a+)+$", 12] }]);
    let text = format!("\"{}!\"", "a".repeat(1_000_000));
    assert_eq!(problems(schemas, &text), ["body: must match the pattern ^(a+)+$"]);
}

#[test]
fn texts_that_fit_costly_patterns_are_not_too_complex() {
    let schemas = json!([
        { "type": ["array"], "items": 1 },
        { "type": ["string"], "pattern": ["^[\\p{General_Category=L}]{1,50}$", "^[\\p{L}]{1,50}$", 5002] },
    ]);
    let names = |count: usize| format!("[\"{}\"]", vec!["abcdefghij"; count].join("\",\""));
    for count in [1, 50, 2_000] {
        assert!(problems(schemas.clone(), &names(count)).is_empty(), "{count}");
    }
}

#[test]
fn divisions_of_numbers_that_are_far_apart_count() {
    let schemas = json!([{ "items": 1 }, { "multipleOf": 0.03 }]);
    let list = |number: &str, count: usize| format!("[{}]", vec![number; count].join(","));
    assert!(problems(schemas.clone(), &list("0.09", 2_000)).is_empty());
    assert_eq!(problems(schemas, &list("3e300", 10_000)), ["body: is too complex to be checked"]);
}

#[test]
fn checks_that_nobody_waits_for_end() {
    let ready = ready(json!([{ "items": 1 }, { "type": ["integer"] }]));
    let media = &ready.body.as_ref().unwrap().types[0];
    let check = |body: &str, stop: &StopFlag| ready.check_body(media, body.as_bytes(), &mut Problems::default(), stop);
    let (waiting, stop) = StopOnDrop::new();
    let body = format!("[{}0]", "0,".repeat(100_000));
    assert!(check(&body, &stop).is_ok());
    drop(waiting);
    assert!(check("[0]", &stop).is_err());
    let mut evaluation = ready.evaluation(ready.budget(body.len()), stop.clone());
    assert!(evaluation.spend(1).is_err());
    assert!(Json::read(body.as_bytes(), &stop).unwrap_err().contains("nobody waits"));
}

/// A validator of parameters, whose schemas are those of the same place.
fn of_parameters(parameters: Value, schemas: Value) -> Arc<Validator> {
    let policy = json!({ "mode": "enforce", "parameters": parameters, "schemas": schemas });
    let validator = validator(&policy);
    validator.made().unwrap();
    validator
}

fn validator(policy: &Value) -> Arc<Validator> {
    Arc::new(Validator::new(policy.to_string().into(), "*".into()))
}

fn begin(validator: &Validator, target: &str, lines: &str) -> PartialCheck {
    let mut space = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let bytes = format!("GET {target} HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
    let head = read_head(bytes.as_bytes(), &mut space).unwrap();
    let partial = validator.begin(&head, &[("id", "7")]).unwrap();
    partial.unwrap_or_else(|refusal| panic!("{}", refusal.message))
}

fn parameter(source: &str, name: &str, schema: usize, kind: &str) -> Value {
    json!({
        "in": source, "name": name, "required": false, "style": if source == "query" { "form" } else { "simple" },
        "explode": false, "allowEmpty": false, "isJson": false, "shape": { "schema": schema, "types": [kind] },
    })
}

#[tokio::test(flavor = "current_thread")]
async fn parameters_are_checked_at_once_where_that_costs_little_and_else_in_their_turn() {
    let wide = json!(["^[\\p{General_Category=L}]{1,50}$", "^[\\p{L}]{1,50}$", 5002]);
    let schemas = json!([
        { "type": ["integer"], "maximum": 9 },
        { "type": ["string"], "pattern": wide },
        { "type": ["integer"], "minimum": 8 },
        { "type": ["string"], "maxLength": 2 },
    ]);
    let parameters = json!([
        parameter("query", "n", 0, "integer"),
        parameter("query", "word", 1, "string"),
        parameter("path", "id", 2, "integer"),
        parameter("header", "X-A", 3, "string"),
    ]);
    let validator = of_parameters(parameters, schemas);
    let long = "x".repeat(3_000);
    for (word, is_kept) in [("a", false), (&*long, true)] {
        let partial = begin(&validator, &format!("/7?n=10&word={word}"), "X-A: abc\r\n");
        assert_eq!(partial.kept.is_some(), is_kept);
        let memory = MemoryShare::new(Arc::new(MemoryBudget::new(usize::MAX)), None);
        let later = Instant::now() + Duration::from_secs(600);
        let checked = finish(&validator, partial, Arc::new(Vec::new()), memory, &"endpoint".into(), later).await;
        let Ok(Verdict::Refused(refusal)) = checked else { panic!("it was let through") };
        let body: Value = serde_json::from_str(refusal.problems.as_deref().unwrap()).unwrap();
        let places: Vec<_> = body.as_array().unwrap().iter().map(|one| one["place"].as_str().unwrap()).collect();
        let expected = ["query.n", "query.word", "path.id", "header.X-A"];
        assert_eq!(places, expected.into_iter().filter(|place| is_kept || *place != "query.word").collect::<Vec<_>>());
    }
}

#[test]
fn many_parameters_with_many_places_to_look_at_cost_something() {
    let parameters = (0..5_000).map(|at| {
        let mut parameter = parameter("query", &format!("p{at}"), 0, "object");
        parameter["style"] = json!("deepObject");
        parameter
    });
    let validator = of_parameters(parameters.collect(), json!([{}]));
    assert!(begin(&validator, "/?a&b", "").kept.is_none());
    let partial = begin(&validator, &format!("/?{}", "a&".repeat(6_000)), "");
    assert!(partial.kept.is_some());
    let Verdict::Refused(refusal) = validator.finish(partial, b"", &StopFlag::default()) else {
        panic!("it was let through")
    };
    assert!(refusal.message.ends_with("is too complex to be checked"), "{}", refusal.message);
}

#[tokio::test(flavor = "current_thread")]
async fn policies_are_waited_for_only_so_long_and_get_ready_all_the_same() {
    let domain: Arc<str> = "slow".into();
    let others = workers::wait_for_turn_to_prepare(&domain).await.unwrap();
    let validator = |mode: &str| {
        let mut policy = policy(json!([{}]));
        policy["mode"] = json!(mode);
        Arc::new(Validator::new(policy.to_string().into(), domain.clone()))
    };
    let enforcing = validator("enforce");
    let mut evaluation = Evaluation::default();
    for (timeout, validator) in [(1, &enforcing), (600_000, &validator("report"))] {
        evaluation = Evaluation::default();
        evaluation.prepare(validator, Duration::from_millis(timeout)).await;
        assert!(evaluation.gave_up_schema && !validator.is_ready());
        // It has had its time.
        evaluation.prepare(validator, Duration::from_millis(timeout)).await;
        assert!(evaluation.gave_up_schema);
    }
    assert!(evaluation.waited_for_schema >= REPORTS_WITHIN && evaluation.waited_for_schema < Duration::from_secs(600));
    drop(others);
    let mut evaluation = Evaluation::default();
    evaluation.prepare(&enforcing, Duration::from_secs(600)).await;
    assert!(!evaluation.gave_up_schema && enforcing.is_ready() && !enforcing.only_reports());
}

#[tokio::test(flavor = "current_thread")]
async fn a_check_that_outlasts_the_deadline_is_not_waited_for_and_gives_back_what_it_holds() {
    let schemas = json!([
        { "anyOf": [1, 2] },
        { "type": ["object"], "properties": { "a": 0 } },
        { "type": ["object"], "properties": { "a": 0 }, "maxProperties": 9 },
    ]);
    let body = format!("{}1{}{}", r#"{"a":"#.repeat(100), "}".repeat(100), " ".repeat(1_000_000));
    let validator = validator(&policy(schemas));
    validator.prepare().await;
    let partial = PartialCheck { problems: Problems::default(), body: BodyKind::Of(0, BodyFormat::Json), kept: None };
    let (held, freed) = tokio::sync::oneshot::channel::<()>();
    let body = Arc::new(Held { bytes: body.into(), _held: held });
    let memory = MemoryShare::new(Arc::new(MemoryBudget::new(usize::MAX)), None);
    let checked = finish(&validator, partial, body, memory, &"endpoint".into(), Instant::now()).await;
    assert_eq!(checked.err(), Some(CheckSkipped::Expired));
    assert!(freed.await.is_err());
}

#[tokio::test(flavor = "current_thread")]
async fn a_check_waits_for_memory_and_is_refused_where_there_is_never_enough() {
    let validator = validator(&policy(json!([{ "type": ["array"] }])));
    validator.prepare().await;
    for items in [1_000, 100_000] {
        let body = Arc::new(format!("[{}0]", "0,".repeat(items)).into_bytes());
        let room = Json::room(&body);
        let whole = Arc::new(MemoryBudget::new(whole_of(&body)));
        let check = |memory: &Arc<MemoryBudget>, deadline| {
            let (validator, body, memory) = (validator.clone(), body.clone(), MemoryShare::new(memory.clone(), None));
            async move {
                let partial =
                    PartialCheck { problems: Problems::default(), body: BodyKind::Of(0, BodyFormat::Json), kept: None };
                finish(&validator, partial, body, memory, &"endpoint".into(), deadline).await
            }
        };
        let later = Instant::now() + Duration::from_secs(600);
        let never = check(&Arc::new(MemoryBudget::new(room)), later).await;
        assert_eq!(never.err(), Some(CheckSkipped::TooLarge));
        let mut others = MemoryShare::new(whole.clone(), None);
        assert!(others.set(whole_of(&body)));
        // On a busy machine its time may be over before it has found out what it needs.
        let mut time = 4 * MEMORY_LOOK;
        let lacking = loop {
            match check(&whole, Instant::now() + time).await.err() {
                Some(CheckSkipped::Expired) if time < Duration::from_secs(60) => time *= 2,
                other => break other,
            }
        };
        assert_eq!(lacking, Some(CheckSkipped::OutOfMemory));
        let waiting = tokio::spawn(check(&whole, later));
        tokio::time::sleep(MEMORY_LOOK).await;
        assert!(!waiting.is_finished());
        drop(others);
        assert!(matches!(waiting.await.unwrap(), Ok(Verdict::Fits)));
    }
}

fn whole_of(body: &[u8]) -> usize {
    Json::room(body) + body.len()
}

#[test]
fn forms_have_bounded_members_and_ask_for_the_memory_of_these() {
    let of = |read: &str| {
        let mut policy = policy(json!([{ "type": ["object"] }]));
        policy["body"]["types"][0]["read"] = json!(read);
        validator(&policy)
    };
    let partial =
        || PartialCheck { problems: Problems::default(), body: BodyKind::Of(0, BodyFormat::Form), kept: None };
    let form = of("form");
    let room = |read: BodyFormat, body: &str| BodyKind::Of(0, read).room(body.as_bytes());
    let of_fields = room(BodyFormat::Form, &"a&".repeat(100_000));
    assert!(of_fields >= 100_000 * 2 * size_of::<(Cow<'_, str>, Cow<'_, str>)>());
    assert!(room(BodyFormat::Form, "text=[[[[[[[[[[{{{{{{{{{{,,,,,,,,,,") < 1_000);
    assert_eq!(room(BodyFormat::Text, &"[{,:".repeat(1_000)), 0);
    let Verdict::Refused(refusal) =
        form.finish(partial(), "a&".repeat(MAX_VALUES + 1).as_bytes(), &StopFlag::default())
    else {
        panic!("it was let through")
    };
    assert_eq!(refusal.message, "body: has more than 1000000 members");
    let (waiting, stop) = StopOnDrop::new();
    drop(waiting);
    let ready = form.made().unwrap();
    let media = &ready.body.as_ref().unwrap().types[0];
    assert!(ready.check_body(media, b"a=1", &mut Problems::default(), &stop).is_err());
}

#[test]
fn what_cannot_be_enforced_is_not_let_through() {
    let read = |schema: Value| {
        let policy = json!({ "mode": "enforce", "parameters": [], "schemas": [schema] });
        Ready::read(&policy.to_string()).err()
    };
    assert!(read(json!({ "newKeyword": 1 })).is_some());
    assert!(read(json!({ "format": "new" })).unwrap().contains("the format new is not known"));
    assert!(read(json!({ "pattern": ["(", "(", 1] })).unwrap().contains("cannot be used"));
    assert!(read(json!({ "minimum": 1 })).is_none());
    let validator = Arc::new(Validator::new("{".into(), "*".into()));
    assert_eq!(validator.made().err().map(|problem| problem.starts_with("EOF")), Some(true));
}

#[test]
fn what_is_left_over_is_found_through_other_schemas() {
    let schemas = json!([
        { "allOf": [1], "anyOf": [2, 3], "unevaluatedProperties": 4 },
        { "properties": { "a": 5 } },
        { "properties": { "b": 5 }, "required": ["b"] },
        { "properties": { "c": 5 }, "required": ["c"] },
        false,
        true,
    ]);
    assert!(problems(schemas.clone(), r#"{"a":1,"b":2,"c":3}"#).is_empty());
    assert_eq!(problems(schemas, r#"{"a":1,"b":2,"d":3}"#), ["body.d: is not accepted"]);
    let schemas =
        json!([{ "prefixItems": [1], "contains": 2, "unevaluatedItems": 3 }, true, { "type": ["string"] }, false]);
    assert_eq!(problems(schemas, r#"[1,"a",2]"#), ["body.2: is not accepted"]);
}

#[tokio::test(flavor = "current_thread")]
async fn what_is_forgotten_between_head_and_body_is_made_again() {
    let validator = validator(&policy(json!([{ "type": ["array"] }])));
    for forgets in [false, true] {
        assert!(validator.prepare().await && validator.is_ready() && validator.bytes() > 0);
        let partial =
            PartialCheck { problems: Problems::default(), body: BodyKind::Of(0, BodyFormat::Json), kept: None };
        if forgets {
            validator.forget();
            assert!(!validator.is_ready() && validator.bytes() == 0 && validator.checks_bodies());
        }
        let memory = MemoryShare::new(Arc::new(MemoryBudget::new(usize::MAX)), None);
        let later = Instant::now() + Duration::from_secs(600);
        let checked = finish(&validator, partial, Arc::new(b"{}".to_vec()), memory, &"endpoint".into(), later).await;
        assert!(matches!(checked, Ok(Verdict::Refused(_))));
    }
}

#[test]
fn a_pattern_weighs_what_it_takes_in_memory_and_what_several_have_in_parts() {
    let read = |pattern: &str| ready(json!([{ "pattern": [pattern, pattern, 1] }]));
    let letters = read("^\\p{L}{40}a0b0$");
    assert!(letters.bytes() > 2 * 1024 * 1024, "{}", letters.bytes());
    let alone = letters.bytes();
    let same = read("^\\p{L}{40}a0b0$");
    assert!(letters.bytes() + same.bytes() < alone + 2_000);
    let simple = read("^[a-z]{1,20}$");
    assert!(simple.bytes() < 32 * 1024, "{}", simple.bytes());
}

#[test]
fn values_names_and_shapes_weigh_what_they_take_in_memory() {
    let zeros = ready(json!([{ "enum": vec![0; 5_000] }]));
    assert!(zeros.bytes() > 5_000 * size_of::<Json<'_>>(), "{}", zeros.bytes());
    let names: serde_json::Map<String, Value> = (0..1_000).map(|at| (format!("n{at}"), json!(0))).collect();
    let properties = ready(json!([{ "properties": names }]));
    assert!(properties.bytes() > 1_000 * 64, "{}", properties.bytes());
}
