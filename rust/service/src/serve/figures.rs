//! The figures of a service, which the actor host adds to its metrics.
use std::cell::{Cell, RefCell};

use serde::{Serialize, Serializer};
use tokio::time::Instant;

use crate::error::CallError;

/// Calls after which a report is due, whether or not somebody wants to know.
const REPORT_AFTER: usize = 10_000;

/// What has happened since the last report, and the use of the pool now.
#[derive(Serialize)]
pub struct Figures {
    calls: Vec<Series>,
    reconnects: u32,
    #[serde(rename = "use")]
    pool_use: PoolUse,
}

#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PoolUse {
    pub in_use: usize,
    pub waiting: usize,
}

/// Calls with the same result: the operation, `ok` or the kind of the error, and how long each took.
#[derive(Serialize)]
struct Series(&'static str, &'static str, Seconds);

/// Durations, in microseconds; in JSON they are seconds.
struct Seconds(Vec<u32>);

#[derive(Default)]
pub struct FigureCollector {
    /// Few: a search is faster than a table.
    series: RefCell<Vec<Series>>,
    count: Cell<usize>,
    reconnects: Cell<u32>,
}

impl FigureCollector {
    /// Adds a call. Returns whether a report is due now.
    #[must_use]
    pub fn called<T>(&self, operation: &'static str, result: &Result<T, CallError>, since: Instant) -> bool {
        let result = result.as_ref().map_or_else(|error| error.kind.name(), |_| "ok");
        let micros = u32::try_from(since.elapsed().as_micros()).unwrap_or(u32::MAX);
        let mut series = self.series.borrow_mut();
        match series.iter_mut().find(|known| known.0 == operation && known.1 == result) {
            Some(known) => known.2.0.push(micros),
            None => series.push(Series(operation, result, Seconds(vec![micros]))),
        }
        self.count.set(self.count.get() + 1);
        self.count.get() == REPORT_AFTER
    }

    pub fn reconnected(&self) {
        self.reconnects.set(self.reconnects.get() + 1);
    }

    /// The figures since the last time.
    pub fn take(&self, pool_use: PoolUse) -> Figures {
        self.count.set(0);
        Figures { calls: self.series.take(), reconnects: self.reconnects.take(), pool_use }
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|&micros| f64::from(micros) / 1e6))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_is_that_of_the_actor_host() {
        let calls = vec![Series("query", "ok", Seconds(vec![1, 250, 2_000_000]))];
        let figures = Figures { calls, reconnects: 1, pool_use: PoolUse { in_use: 2, waiting: 3 } };
        let expected = concat!(
            r#"{"calls":[["query","ok",[1e-6,0.00025,2.0]]],"#,
            r#""reconnects":1,"use":{"inUse":2,"waiting":3}}"#
        );
        assert_eq!(serde_json::to_string(&figures).unwrap(), expected);
    }
}
