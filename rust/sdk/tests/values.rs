//! `Pairs` and `Values`: values read as types, in the styles of OpenAPI.

use rust_edge_gateway_sdk::prelude::*;
use rust_edge_gateway_sdk::wire::frame::{Frame, Kind};
use rust_edge_gateway_sdk::wire::head;
use std::collections::HashMap;

fn request(target: &str, headers: &[&str], params: JsonValue) -> Request {
    let head = json!({"method": "GET", "target": target, "headers": headers, "params": params}).to_string();
    head::request(&Frame { kind: Kind::Request, number: 1, head: head.as_bytes(), body: b"" }).unwrap()
}

fn get(target: &str) -> Request {
    request(target, &[], json!({}))
}

/// A request whose path parameter `id` is this.
fn with_id(id: &str) -> Request {
    request("/", &[], json!({"id": id}))
}

fn object<const N: usize>(members: [(&str, &str); N]) -> HashMap<String, String> {
    members.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn refusal<T: std::fmt::Debug>(result: Result<T, HandlerError>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.status_code(), 400);
    error.to_string().strip_prefix("Bad request: ").unwrap().to_owned()
}

#[test]
fn the_last_value_of_a_name_is_read_as_a_type_and_a_missing_or_wrong_one_is_refused_by_its_name() {
    let query = get("/?n=1&n=2&bad=x&empty=").query_pairs();
    assert_eq!(query.optional::<u8>("n").unwrap(), Some(2));
    assert_eq!(query.required::<u8>("n").unwrap(), 2);
    assert_eq!(query.optional::<u8>("none").unwrap(), None);
    assert_eq!(query.required::<String>("empty").unwrap(), "");
    assert_eq!(refusal(query.required::<u8>("none")), "Missing required query parameter: none");
    assert_eq!(refusal(query.optional::<u8>("bad")), "Invalid value for query parameter bad: \"x\"");
    let req = request("/", &["x-n", "3", "cookie", "n=4; n=5"], json!({}));
    assert_eq!(req.header_values("X-N").required::<u8>().unwrap(), 3);
    assert_eq!(req.cookie_pairs().required::<u8>("n").unwrap(), 4);
    assert_eq!(refusal(req.header_values("X-M").required::<u8>()), "Missing required header: X-M");
    assert_eq!(refusal(req.cookie_pairs().required::<u8>("m")), "Missing required cookie: m");
    assert_eq!(refusal(req.path_values("m").required::<u8>()), "Missing required path parameter: m");
}

#[test]
fn lists_are_read_from_repeated_names_and_separated_values_and_an_empty_value_is_no_wrong_item() {
    let query = get("/?a=1&a=2&b=3,4&pipes=5|6&spaces=7%208&none=&bad=1,x").query_pairs();
    let list = |name: &str, separator: char| query.values(name).split(separator).required_list::<u8>().unwrap();
    assert_eq!(query.values("a").required_list::<u8>().unwrap(), [1, 2]);
    assert_eq!([list("b", ','), list("pipes", '|'), list("spaces", ' ')].concat(), [3, 4, 5, 6, 7, 8]);
    assert!(list("none", ',').is_empty());
    assert_eq!(query.values("none").split(',').optional_list::<u8>().unwrap(), Some(vec![]));
    assert_eq!(query.values("c").split(',').optional_list::<u8>().unwrap(), None);
    assert_eq!(refusal(query.values("c").required_list::<u8>()), "Missing required query parameter: c");
    let bad = query.values("bad").split(',').required_list::<u8>();
    assert_eq!(refusal(bad), "Invalid value for query parameter bad: \"x\"");
    // The gateway's policy `validate` takes an empty value in the same way.
    assert!(query.values("none").required_list::<u8>().unwrap().is_empty());
    assert_eq!(query.values("none").optional_list::<u8>().unwrap(), Some(vec![]));
    assert_eq!(query.values("none").required_list::<String>().unwrap(), [""]);
    assert_eq!(refusal(query.required::<u8>("none")), "Invalid value for query parameter none: \"\"");
    let twice = get("/?none=&none=").query_pairs();
    assert_eq!(refusal(twice.values("none").required_list::<u8>()), "Invalid value for query parameter none: \"\"");
    let req = request("/", &["x-n", "1, 2", "X-N", "3"], json!({}));
    assert_eq!(req.header_values("X-N").split(',').required_list::<u8>().unwrap(), [1, 2, 3]);
    let query = get("/?id[]=1&id[0]=2&id=3&ids[]=4").query_pairs();
    assert_eq!(query.deep_list("id").required_list::<u8>().unwrap(), [1, 2]);
}

#[test]
fn objects_are_read_from_each_way_in_which_they_are_written_and_a_key_needs_a_value() {
    let query = get("/?o=R,100,G,200&e=R%3D1,G%3D2&filter[a]=1&filter[b%20c]=2&filter[=3&filters[a]=4&R=5&G=6&page=7")
        .query_pairs();
    let filter = query.deep_object("filter").required_object().unwrap();
    assert_eq!(filter, object([("a", "1"), ("b c", "2")]));
    assert_eq!(query.deep_object("none").optional_object().unwrap(), None);
    let alternating = query.values("o").split(',').required_object().unwrap();
    assert_eq!(alternating, object([("R", "100"), ("G", "200")]));
    let pairs = query.values("e").split(',').split_pairs().required_object().unwrap();
    assert_eq!(pairs, object([("R", "1"), ("G", "2")]));
    let members = query.members("color", &["R", "G", "B"]).optional_object().unwrap();
    assert_eq!(members, Some(object([("R", "5"), ("G", "6")])));
    assert_eq!(query.members("color", &["B"]).optional_object().unwrap(), None);
    let missing = query.members("color", &["B"]).required_object();
    assert_eq!(refusal(missing), "Missing required query parameter: color");
    let others = get("/?page=7&x=1&y=2").query_pairs();
    let others = others.other_members("all", &["page"]).required_object().unwrap();
    assert_eq!(others, object([("x", "1"), ("y", "2")]));
    let odd = get("/?o=R,100,G").query_pairs();
    let odd = odd.values("o").split(',').required_object();
    assert_eq!(refusal(odd), "Invalid value for query parameter o: \"G\" is a key without a value");
}

#[test]
fn values_in_label_and_matrix_style_are_read_and_refused_without_their_beginning() {
    let list = |id: &str, read: fn(rust_edge_gateway_sdk::Values<'_>) -> Result<Vec<String>, HandlerError>| {
        read(with_id(id).path_values("id")).unwrap().join(" ")
    };
    assert_eq!(with_id(".1.5").path_values("id").label().required::<f64>().unwrap(), 1.5);
    assert_eq!(with_id(";id=1.5").path_values("id").matrix().required::<f64>().unwrap(), 1.5);
    for (id, expected) in [(".a.b", "a b"), (".a,b", "a b"), (".1.5,2", "1.5 2"), (".a", "a")] {
        assert_eq!(list(id, |id| id.split_label().required_list()), expected, "{id}");
    }
    assert_eq!(list(".a,b.c", |id| id.label().split('.').required_list()), "a,b c");
    assert_eq!(list(";id=a,b", |id| id.matrix().split(',').required_list()), "a b");
    assert_eq!(list(";id=a,b;id=c;other=d", |id| id.matrix().required_list()), "a,b c");
    let none = with_id("7");
    let without_semicolon = with_id("id=7");
    let matrix = without_semicolon.path_values("id").matrix().required::<u8>();
    assert!(refusal(matrix).ends_with("\"id=7\" does not begin with \";id=\""));
    let values = || none.path_values("id");
    let wrong = |start: &str| format!("Invalid value for path parameter id: \"7\" does not begin with \"{start}\"");
    assert_eq!(refusal(values().matrix().required::<u8>()), wrong(";id="));
    assert_eq!(refusal(values().matrix().split(',').optional_list::<u8>()), wrong(";id="));
    assert_eq!(refusal(values().matrix_object().required_object()), wrong(";"));
    assert_eq!(refusal(values().split_label().one_of(&["7"]).unwrap().required_list::<u8>()), wrong("."));
    let color = object([("R", "1"), ("G", "2")]);
    for (id, read) in [
        (".R,1,G,2", (|id| id.split_label().required_object()) as fn(rust_edge_gateway_sdk::Values<'_>) -> _),
        (".R=1.G=2", |id| id.label().split('.').split_pairs().required_object()),
        (";id=R,1,G,2", |id| id.matrix().split(',').required_object()),
        (";R=1;G=2", |id| id.matrix_object().required_object()),
    ] {
        assert_eq!(read(with_id(id).path_values("id")).unwrap(), color, "{id}");
    }
}

#[test]
fn a_value_that_is_not_one_of_those_allowed_is_refused_with_a_list_of_these() {
    let query = get("/?order=name&orders=name,x").query_pairs();
    let order = query.values("order").one_of(&["name", "age"]).unwrap();
    assert_eq!(order.required::<String>().unwrap(), "name");
    let wrong = query.values("orders").split(',').one_of(&["name", "age"]);
    assert_eq!(refusal(wrong), "Invalid value for query parameter orders: \"x\" is not one of \"name\", \"age\"");
    let single = query.values("order").one_of(&["a\"b"]);
    assert_eq!(refusal(single), "Invalid value for query parameter order: \"name\" is not \"a\\\"b\"");
    assert_eq!(query.values("none").one_of(&["a"]).unwrap().optional::<String>().unwrap(), None);
    let empty = get("/?order=").query_pairs();
    let order = || empty.values("order").one_of(&["name"]).unwrap();
    assert!(order().required_list::<String>().unwrap().is_empty());
    assert_eq!(refusal(order().optional::<String>()), "Invalid value for query parameter order: \"\" is not \"name\"");
    let twice = get("/?n=9&n=1").query_pairs();
    let twice = twice.values("n").one_of(&["1"]).unwrap();
    assert_eq!(twice.required::<u8>().unwrap(), 1);
    assert_eq!(refusal(twice.required_list::<u8>()), "Invalid value for query parameter n: \"9\" is not \"1\"");
    let many: Vec<String> = (0..60).map(|n| n.to_string()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(refusal(query.values("order").one_of(&many)).ends_with("\"48\", \"49\" and 10 more"));
}
