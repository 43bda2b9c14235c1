//! The costs of the route table: lookups of each kind of route against static ones, lookups among many routes against
//! few, changes, and memory. Prints rows as JSON; `npm run bench -- routes` makes a table of them.
use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::HashMap;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use edge_front::routes::{Lookup, RouteTable};
use serde_json::json;

const MANY: usize = 10_000;
const FEW: usize = 12;
const ROUNDS: usize = 101;

type Table = RouteTable<Rc<usize>>;

/// The system's allocator, and what is allocated.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);
static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all is done by the system's allocator; the counts change nothing about it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller has promised.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Each resource with its list, and one of it in three forms; on one path there are many formats.
fn routes(count: usize) -> Vec<String> {
    let resource = |at| {
        [
            format!("/v1/things{at}/all"),
            format!("/v1/things{at}/{{id}}.json"),
            format!("/v1/things{at}/{{id}}/parts"),
            format!("/v1/exports/{{id}}.format{at}"),
        ]
    };
    (0..count / 4).flat_map(resource).collect()
}

fn table(routes: &[String]) -> Table {
    let mut table = Table::new();
    for (at, route) in routes.iter().enumerate() {
        table.add("*", "GET", route, Rc::new(at)).expect("it is a route");
    }
    table
}

/// Paths that match each kind of route, as many for a small table as for a large one.
struct Paths {
    text: Vec<String>,
    mixed: Vec<String>,
    format: Vec<String>,
    param: Vec<String>,
    encoded: Vec<String>,
}

fn paths(routes: usize) -> Paths {
    let of = |path: fn(usize) -> String| (0..MANY / 4).map(|at| path(at % (routes / 4))).collect();
    Paths {
        text: of(|at| format!("/v1/things{at}/all")),
        mixed: of(|at| format!("/v1/things{at}/a1b2c3.json")),
        format: of(|at| format!("/v1/exports/a1b2c3.format{at}")),
        param: of(|at| format!("/v1/things{at}/a1b2c3/parts")),
        encoded: of(|at| format!("/v1/things{at}/a%20b2c3/parts")),
    }
}

/// Nanoseconds of a lookup, on average.
fn lookups(table: &Table, paths: &[String]) -> f64 {
    let find_all = || {
        for path in paths {
            let found = black_box(table).find("example.com", "GET", path);
            assert!(matches!(black_box(found), Lookup::Found { .. }), "{path} is not found");
        }
    };
    // Once before, or the kind that comes first would fill the caches for the others.
    find_all();
    let began = Instant::now();
    find_all();
    each(began, paths.len())
}

/// Nanoseconds to add a route and to remove it, on average, in a table that has the others.
fn changes(table: &mut Table, routes: &[String]) -> f64 {
    let began = Instant::now();
    for (at, route) in routes.iter().enumerate() {
        table.remove("*", "GET", route, |target| **target == at);
        table.add("*", "GET", route, Rc::new(at)).expect("it is a route");
    }
    each(began, routes.len())
}

fn each(began: Instant, count: usize) -> f64 {
    began.elapsed().as_nanos() as f64 / count as f64
}

/// Prints a row of `bench/support/report.ts`.
fn row(question: &str, measured: &str, value: f64, unit: &str, at_most: f64) {
    let bar = json!({ "atMost": at_most });
    println!("{}", json!({ "question": question, "measured": measured, "value": value, "unit": unit, "bar": bar }));
}

fn main() {
    let (all, some) = (routes(MANY), routes(FEW));
    let before = BYTES.load(Ordering::Relaxed);
    let many = table(&all);
    let targets = MANY * size_of::<[usize; 3]>();
    let bytes = BYTES.load(Ordering::Relaxed) - before - targets;
    let few = table(&some);
    let (mut changed_of_many, mut changed_of_few) = (table(&all), table(&some));
    let (paths_of_many, paths_of_few) = (paths(MANY), paths(FEW));
    let Paths { text, mixed, format, param, encoded } = &paths_of_many;

    // The best of many rounds, in turn: what else the machine does hits all alike, and seldom each of the rounds.
    let mut best = HashMap::new();
    for _ in 0..ROUNDS {
        let times = [
            ("text", lookups(&many, text)),
            ("mixed", lookups(&many, mixed)),
            ("format", lookups(&many, format)),
            ("param", lookups(&many, param)),
            ("encoded", lookups(&many, encoded)),
            ("text, few", lookups(&few, &paths_of_few.text)),
            ("param, few", lookups(&few, &paths_of_few.param)),
            ("changes", changes(&mut changed_of_many, &all)),
            (
                "changes, few",
                (0..MANY / FEW).map(|_| changes(&mut changed_of_few, &some)).sum::<f64>() / (MANY / FEW) as f64,
            ),
        ];
        for (kind, time) in times {
            best.entry(kind).and_modify(|least: &mut f64| *least = least.min(time)).or_insert(time);
        }
    }
    let allocations = |paths: &[String]| {
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        lookups(&many, paths);
        (ALLOCATIONS.load(Ordering::Relaxed) - before) as f64 / (2 * paths.len()) as f64
    };

    let against = |question: &str, kind: &str, other: &str, at_most: f64| {
        let (time, other) = (best[kind], best[other]);
        row(question, &format!("{time:.0} ns against {other:.0} ns"), time / other, "x", at_most);
    };
    against("lookup of text and a parameter in one segment, against text, 10,000 routes", "mixed", "text", 1.3);
    against("lookup of one of 2,500 such routes that differ in that segment alone", "format", "text", 2.0);
    against("lookup of a parameter, against text", "param", "text", 2.0);
    against("lookup of an encoded parameter, against text", "encoded", "text", 4.0);
    against("lookup of text among 10,000 routes, against 12", "text", "text, few", 3.0);
    against("lookup of a parameter among 10,000 routes, against 12", "param", "param, few", 3.0);
    against("removing and adding a route among 10,000, against 12", "changes", "changes, few", 2.0);
    row("allocations of a lookup of text", "", allocations(text), "", 0.0);
    row("allocations of a lookup of a parameter", "", allocations(param), "", 1.0);
    let megabytes = bytes as f64 / 1e6;
    row("memory of a table of 10,000 routes", &format!("{} bytes a route", bytes / MANY), megabytes, "MB", 4.0);
}
