use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{Lookup, RouteTable};

/// What a lookup finds, with owned parts.
#[derive(Debug, PartialEq)]
enum Found {
    Target(String, BTreeMap<String, String>),
    WrongMethod(Vec<String>),
    Unknown,
    Malformed,
}

fn table(routes: &[(&str, &str, &str)]) -> RouteTable<String> {
    let mut made = RouteTable::new();
    for (domain, method, route) in routes {
        made.add(domain, method, route, format!("{domain} {method} {route}")).unwrap();
    }
    made
}

fn find(table: &RouteTable<String>, host: &str, method: &str, path: &str) -> Found {
    match table.find(host, method, path) {
        Lookup::Found { target, names, values } => {
            assert_eq!(names.len(), values.len());
            let params = names.iter().map(|name| name.to_string()).zip(values.into_iter().map(String::from));
            Found::Target(target.clone(), params.collect())
        }
        Lookup::WrongMethod { allow } => Found::WrongMethod(allow.into_iter().map(String::from).collect()),
        Lookup::Unknown => Found::Unknown,
        Lookup::Malformed => Found::Malformed,
    }
}

fn target(name: &str, params: &[(&str, &str)]) -> Found {
    Found::Target(name.into(), params.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect())
}

fn wrong_method(allow: &[&str]) -> Found {
    Found::WrongMethod(allow.iter().map(|method| method.to_string()).collect())
}

#[test]
fn prefers_exact_hosts_to_any_and_static_segments_to_parameters() {
    let routes =
        table(&[("*", "GET", "/a/{x}"), ("*", "GET", "/only"), ("h.test", "GET", "/a/{x}"), ("h.test", "GET", "/a/b")]);
    assert_eq!(find(&routes, "h.test", "GET", "/a/b"), target("h.test GET /a/b", &[]));
    assert_eq!(find(&routes, "h.test", "GET", "/a/c"), target("h.test GET /a/{x}", &[("x", "c")]));
    assert_eq!(find(&routes, "other.test", "GET", "/a/b"), target("* GET /a/{x}", &[("x", "b")]));
    assert_eq!(find(&routes, "h.test", "GET", "/only"), target("* GET /only", &[]));
    assert_eq!(find(&routes, "h.test", "GET", "/none"), Found::Unknown);
}

#[test]
fn does_not_let_a_route_of_another_method_hide_a_matching_one() {
    let routes = table(&[("h.test", "POST", "/a/b"), ("h.test", "GET", "/a/{x}"), ("*", "DELETE", "/a/b")]);
    assert_eq!(find(&routes, "h.test", "GET", "/a/b"), target("h.test GET /a/{x}", &[("x", "b")]));
    assert_eq!(find(&routes, "h.test", "DELETE", "/a/b"), target("* DELETE /a/b", &[]));
    let allow = wrong_method(&["DELETE", "GET", "HEAD", "POST"]);
    assert_eq!(find(&routes, "h.test", "PUT", "/a/b"), allow);
    assert_eq!(find(&routes, "h.test", "OPTIONS", "/a/b"), allow);
    assert_eq!(find(&routes, "h.test", "get", "/a/b"), allow);
}

#[test]
fn backtracks_when_a_static_branch_does_not_match() {
    let routes = table(&[("*", "GET", "/a/b/c"), ("*", "GET", "/a/{x}/d"), ("*", "GET", "/{y}/b/e")]);
    assert_eq!(find(&routes, "x", "GET", "/a/b/c"), target("* GET /a/b/c", &[]));
    assert_eq!(find(&routes, "x", "GET", "/a/b/d"), target("* GET /a/{x}/d", &[("x", "b")]));
    assert_eq!(find(&routes, "x", "GET", "/a/b/e"), target("* GET /{y}/b/e", &[("y", "a")]));
}

#[test]
fn prefers_mixed_segments_to_parameters_those_with_the_most_text_first() {
    let routes = table(&[
        ("*", "GET", "/r/{id}"),
        ("*", "GET", "/r/{id}.json"),
        ("*", "GET", "/r/{name}.{ext}"),
        ("*", "GET", "/r/v{x}"),
        ("*", "GET", "/r/{id}:archive"),
        ("*", "POST", "/r/{id}:publish"),
        ("*", "GET", "/r/all.json"),
    ]);
    let found = |path| find(&routes, "x", "GET", path);
    assert_eq!(found("/r/all.json"), target("* GET /r/all.json", &[]));
    assert_eq!(found("/r/v1.json"), target("* GET /r/{id}.json", &[("id", "v1")]));
    assert_eq!(found("/r/v1.yaml"), target("* GET /r/v{x}", &[("x", "1.yaml")]));
    assert_eq!(found("/r/a.tar.gz"), target("* GET /r/{name}.{ext}", &[("name", "a"), ("ext", "tar.gz")]));
    assert_eq!(found("/r/..gz"), target("* GET /r/{name}.{ext}", &[("name", "."), ("ext", "gz")]));
    assert_eq!(found("/r/é.ü"), target("* GET /r/{name}.{ext}", &[("name", "é"), ("ext", "ü")]));
    assert_eq!(found("/r/%C3%A9.%C3%BC"), target("* GET /r/{name}.{ext}", &[("name", "é"), ("ext", "ü")]));
    assert_eq!(found("/r/7:archive"), target("* GET /r/{id}:archive", &[("id", "7")]));
    assert_eq!(found("/r/.json"), target("* GET /r/{id}", &[("id", ".json")]));
    assert_eq!(found("/r/v"), target("* GET /r/{id}", &[("id", "v")]));
    assert_eq!(found("/r/a%2Fb.json"), target("* GET /r/{id}.json", &[("id", "a/b")]));
    assert_eq!(found("/r/7:publish"), target("* GET /r/{id}", &[("id", "7:publish")]));
    let published = find(&routes, "x", "POST", "/r/7:publish");
    assert_eq!(published, target("* POST /r/{id}:publish", &[("id", "7")]));
}

#[test]
fn finds_mixed_segments_among_many() {
    let mut routes = RouteTable::new();
    let added = (0..100).flat_map(|at| [format!("/r/{{x}}.{at}"), format!("/r/{at}-{{x}}")]).collect::<Vec<_>>();
    for route in added.iter().rev() {
        routes.add("*", "GET", route, route.clone()).unwrap();
    }
    routes.add("*", "GET", "/r/{x}é", "é".into()).unwrap();
    assert_eq!(find(&routes, "x", "GET", "/r/a.7"), target("/r/{x}.7", &[("x", "a")]));
    assert_eq!(find(&routes, "x", "GET", "/r/12-a"), target("/r/12-{x}", &[("x", "a")]));
    // Both have three characters of text, and the second more of it at the beginning.
    assert_eq!(find(&routes, "x", "GET", "/r/12-a.12"), target("/r/12-{x}", &[("x", "a.12")]));
    assert_eq!(find(&routes, "x", "GET", "/r/1-a.12"), target("/r/{x}.12", &[("x", "1-a")]));
    assert_eq!(find(&routes, "x", "GET", "/r/aé"), target("é", &[("x", "a")]));
    // Where its last byte alone is looked up, it is within a character.
    assert_eq!(find(&routes, "x", "GET", "/r/✓"), Found::Unknown);
    for route in &added {
        let path = route.replace("{x}", "a");
        assert_eq!(find(&routes, "x", "GET", &path), target(route, &[("x", "a")]));
        routes.remove("*", "GET", route, |found| found == route);
        assert_eq!(find(&routes, "x", "GET", &path), Found::Unknown);
    }
}

#[test]
fn gives_a_catch_all_the_rest_of_a_path_when_nothing_else_fits() {
    let routes =
        table(&[("*", "GET", "/files/{*path}"), ("*", "GET", "/files/{name}/meta"), ("h.test", "POST", "/{*all}")]);
    let rest = |path| find(&routes, "x", "GET", path);
    assert_eq!(rest("/files/a/b%2Fc//d/"), target("* GET /files/{*path}", &[("path", "a/b/c//d")]));
    assert_eq!(rest("/files/a"), target("* GET /files/{*path}", &[("path", "a")]));
    assert_eq!(rest("/files/a/meta"), target("* GET /files/{name}/meta", &[("name", "a")]));
    assert_eq!(rest("/files/a/meta/b"), target("* GET /files/{*path}", &[("path", "a/meta/b")]));
    assert_eq!(rest("/files"), Found::Unknown);
    assert_eq!(rest("/files/"), Found::Unknown);
    let own = find(&routes, "h.test", "GET", "/files/x");
    assert_eq!(own, target("* GET /files/{*path}", &[("path", "x")]));
    assert_eq!(find(&routes, "h.test", "PUT", "/files/x"), wrong_method(&["GET", "HEAD", "POST"]));
    assert_eq!(find(&routes, "h.test", "POST", "/"), Found::Unknown);
}

#[test]
fn routes_head_like_get() {
    let routes = table(&[("*", "GET", "/")]);
    assert_eq!(find(&routes, "x", "HEAD", "/"), target("* GET /", &[]));
    assert_eq!(find(&routes, "x", "GET", "//"), target("* GET /", &[]));
}

#[test]
fn decodes_segments_after_splitting_the_path() {
    let routes = table(&[("*", "GET", "/files/{name}"), ("*", "GET", "/gr%C3%BC%C3%9Fe")]);
    let found = find(&routes, "x", "GET", "/files/a%2Fb%20c");
    assert_eq!(found, target("* GET /files/{name}", &[("name", "a/b c")]));
    assert_eq!(find(&routes, "x", "GET", "/gr%c3%bc%c3%9fe"), target("* GET /gr%C3%BC%C3%9Fe", &[]));
    for path in ["/files/%zz", "/files/%ff", "/files/%c3/%bc", "/%2", "/%", "files", "", "*"] {
        assert_eq!(find(&routes, "x", "GET", path), Found::Malformed, "{path}");
    }
}

#[test]
fn ignores_a_trailing_slash_and_does_not_match_a_parameter_with_an_empty_segment() {
    let routes = table(&[("*", "GET", "/items/{id}")]);
    assert_eq!(find(&routes, "x", "GET", "/items/1/"), target("* GET /items/{id}", &[("id", "1")]));
    assert_eq!(find(&routes, "x", "GET", "/items/"), Found::Unknown);
    assert_eq!(find(&routes, "x", "GET", "/items//"), Found::Unknown);
    assert_eq!(find(&routes, "x", "GET", "//items/1"), Found::Unknown);
}

#[test]
fn removes_a_route_only_for_its_current_target() {
    let mut routes = RouteTable::new();
    routes.add("*", "GET", "/a/{x}", 1).unwrap();
    routes.add("*", "GET", "/a/{y}", 2).unwrap();
    routes.remove("*", "GET", "/a/{x}", |target| *target == 1);
    let found = Lookup::Found { target: &2, names: &["y".into()], values: vec!["b".into()] };
    assert_eq!(routes.find("x", "GET", "/a/b"), found);
    routes.remove("*", "GET", "/a/{x}", |target| *target == 2);
    assert_eq!(routes.find("x", "GET", "/a/b"), Lookup::Unknown);
    assert!(routes.any_host.is_empty());
}

#[test]
fn refuses_what_is_not_a_route() {
    let mut routes = RouteTable::new();
    assert!(routes.add("*", "GET", "/{a", 1).is_err());
    assert!(routes.add("*", "BREW", "/a", 1).is_err());
    assert!(routes.any_host.is_empty());
}

#[test]
fn the_longest_of_routes_can_be_found() {
    let route = "/a".repeat(1024);
    let routes = table(&[("*", "GET", &route), ("*", "GET", "/{*rest}")]);
    assert_eq!(find(&routes, "x", "GET", &route), target(&format!("* GET {route}"), &[]));
    let other = format!("{route}/a");
    assert_eq!(find(&routes, "x", "GET", &other), target("* GET /{*rest}", &[("rest", &other[1..])]));
}

type Route = (String, String, String);

fn segment() -> impl Strategy<Value = String> {
    let text = || prop::sample::select(vec!["a", "b", ".", ":a", "ab"]);
    let perhaps = move || prop_oneof![Just(""), text()];
    let mixed = (perhaps(), text(), perhaps(), 0..3).prop_map(|(first, middle, last, form)| match form {
        0 => format!("{first}{{x}}{middle}"),
        1 => format!("{middle}{{x}}{last}"),
        _ => format!("{first}{{x}}{middle}{{y}}{last}"),
    });
    prop_oneof![prop::sample::select(vec!["a", "b", "{x}", "{y}"]).prop_map(String::from), mixed]
}

fn route() -> impl Strategy<Value = Route> {
    let path = (prop::collection::vec(segment(), 0..4), any::<bool>()).prop_map(|(mut segments, has_rest)| {
        if has_rest {
            segments.push("{*r}".into());
        }
        // A parameter has one value: each has a name of its own.
        let mut names = 'a'..;
        let path = segments.join("/").split_inclusive(['x', 'y']).map(String::from).collect::<Vec<_>>();
        let named = |part: String| match part.strip_suffix(['x', 'y']) {
            Some(before) => format!("{before}{}", names.next().unwrap_or_default()),
            None => part,
        };
        format!("/{}", path.into_iter().map(named).collect::<String>())
    });
    let domain = prop::sample::select(vec!["*", "h.test"]);
    let method = prop::sample::select(vec!["GET", "POST"]);
    (domain, method, path).prop_map(|(domain, method, path)| (domain.into(), method.into(), path))
}

fn request() -> impl Strategy<Value = (&'static str, &'static str, String)> {
    // One of them has a slash in it, and some paths end with a slash.
    let segment = prop::sample::select(vec!["a", "b", "c", "a%2Fb", "%61", "a.b", "bb:a", "abab", ""]);
    let path = (prop::collection::vec(segment, 0..5), any::<bool>()).prop_map(|(segments, slash)| {
        let slash = if slash && !segments.is_empty() { "/" } else { "" };
        format!("/{}{slash}", segments.join("/"))
    });
    let host = prop::sample::select(vec!["h.test", "other.test"]);
    let method = prop::sample::select(vec!["GET", "POST", "HEAD", "PUT"]);
    (host, method, path)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn finds_the_same_as_a_linear_search_after_any_additions_and_removals(
        changes in prop::collection::vec((any::<bool>(), route()), 0..40),
        requests in prop::collection::vec(request(), 0..10),
    ) {
        let mut routes = RouteTable::new();
        let mut known = BTreeMap::new();
        for (is_removal, route) in changes {
            let key = key_of(&route);
            let (domain, method, path) = &route;
            if !is_removal {
                routes.add(domain, method, path, key.clone()).unwrap();
                known.insert(key, route);
            } else if known.remove(&key).is_some() {
                routes.remove(domain, method, path, |target| *target == key);
            }
        }
        let known = known.into_values().collect::<Vec<_>>();
        for (host, method, path) in requests {
            prop_assert_eq!(find(&routes, host, method, &path), find_in(&known, host, method, &path), "{}", path);
        }
        for (domain, method, path) in &known {
            routes.remove(domain, method, path, |_| true);
        }
        prop_assert!(routes.hosts.is_empty() && routes.any_host.is_empty());
    }
}

/// Equal for routes that match the same requests.
fn key_of((domain, method, path): &Route) -> String {
    let mut nameless = String::new();
    for part in path.split_inclusive('{') {
        nameless += part.split_once('}').map_or(part, |(name, rest)| if name == "*r" { part } else { rest });
    }
    format!("{domain} {method} {nameless}")
}

/// Reference implementation: all that fit, the best one by its rank.
fn find_in(routes: &[Route], host: &str, method: &str, path: &str) -> Found {
    let path = match path.strip_suffix('/') {
        Some("") | None => path,
        Some(shorter) => shorter,
    };
    let wanted = path[1..].split('/').map(|text| text.replace("%2F", "/").replace("%61", "a")).collect::<Vec<_>>();
    let method = if method == "HEAD" { "GET" } else { method };
    let mut fitting = Vec::new();
    for route in routes {
        let mut params = BTreeMap::new();
        if ["*", host].contains(&&*route.0) && fits(&route.2, &wanted, &mut params) {
            fitting.push((rank_of(route), route, params));
        }
    }
    fitting.sort_by(|left, right| left.0.cmp(&right.0));
    if let Some((_, route, params)) = fitting.iter().find(|(_, route, _)| route.1 == method) {
        return Found::Target(key_of(route), params.clone());
    }
    let mut methods = fitting.iter().map(|(_, route, _)| route.1.clone()).collect::<BTreeSet<_>>();
    if methods.contains("GET") {
        methods.insert("HEAD".into());
    }
    if methods.is_empty() { Found::Unknown } else { Found::WrongMethod(methods.into_iter().collect()) }
}

/// Whether a route fits the decoded segments of a path, and the parameters that it reads from them.
fn fits(path: &str, wanted: &[String], params: &mut BTreeMap<String, String>) -> bool {
    let mut segments = path[1..].split('/').collect::<Vec<_>>();
    let has_rest = segments.last() == Some(&"{*r}");
    if has_rest {
        segments.pop();
    }
    if wanted.len() < segments.len() || (!has_rest && wanted.len() > segments.len()) {
        return false;
    }
    let (named, rest) = wanted.split_at(segments.len());
    if !segments.iter().zip(named).all(|(segment, wanted)| fits_segment(segment, wanted, params)) {
        return false;
    }
    if has_rest {
        params.insert("r".into(), rest.join("/"));
    }
    !has_rest || rest.first().is_some_and(|first| !first.is_empty())
}

/// Tries all lengths of each parameter, the shortest first.
fn fits_segment(segment: &str, wanted: &str, params: &mut BTreeMap<String, String>) -> bool {
    let Some((text, rest)) = segment.split_once('{') else { return segment == wanted };
    let (name, rest) = rest.split_once('}').unwrap();
    let Some(wanted) = wanted.strip_prefix(text) else { return false };
    (1..=wanted.len()).any(|length| {
        params.insert(name.into(), wanted[..length].into());
        fits_segment(rest, &wanted[length..], params)
    })
}

/// Sorts before that of a route that comes after it.
fn rank_of((domain, _, path): &Route) -> (bool, Vec<(u8, i64, i64, String)>) {
    let ranks = path[1..].split('/').map(|segment| {
        let texts = segment.split('{').map(|part| part.split_once('}').map_or(part, |(_, text)| text));
        let texts = texts.collect::<Vec<_>>();
        let spelling = texts.join("{");
        match texts[..] {
            _ if segment == "{*r}" => (3, 0, 0, String::new()),
            [_] => (0, 0, 0, String::new()),
            ["", ""] => (2, 0, 0, String::new()),
            _ => (1, -(texts.concat().len() as i64), -(texts[0].len() as i64), spelling),
        }
    });
    (domain == "*", ranks.collect())
}
