//! Counts of requests. Each thread has its own, so that counting needs no synchronisation; they are added when read.
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::messages::{EndpointMetrics, Metrics};

/// Upper bounds of the buckets of durations, seconds.
pub const BOUNDS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];

/// The finished requests of one endpoint in one thread.
#[derive(Clone, Default)]
pub struct Figures {
    statuses: [u64; 10],
    buckets: [u64; 16],
    seconds: f64,
}

impl Figures {
    pub fn count_finished(&mut self, status: u16, seconds: f64) {
        self.statuses[usize::from(status / 100).min(9)] += 1;
        self.buckets[BOUNDS.iter().position(|&bound| seconds <= bound).unwrap_or(BOUNDS.len())] += 1;
        self.seconds += seconds;
    }

    fn add(&mut self, other: &Self) {
        for (sum, more) in self.statuses.iter_mut().zip(other.statuses) {
            *sum += more;
        }
        for (sum, more) in self.buckets.iter_mut().zip(other.buckets) {
            *sum += more;
        }
        self.seconds += other.seconds;
    }
}

/// The figures of one thread.
#[derive(Default)]
pub struct ThreadFigures {
    pub in_flight: usize,
    pub refused: BTreeMap<u16, u64>,
    /// Requests that policies answered, by their names.
    pub policies: BTreeMap<&'static str, u64>,
    /// Requests that policies let through though something is wrong with them.
    pub reported: BTreeMap<&'static str, u64>,
    pub endpoints: Vec<(Arc<str>, Figures)>,
}

/// Adds the figures of all threads.
pub fn sum(threads: Vec<ThreadFigures>, connections: usize) -> Metrics {
    let mut metrics = Metrics { connections, ..Metrics::default() };
    let mut endpoints: HashMap<Arc<str>, Figures> = HashMap::new();
    for thread in threads {
        metrics.requests_in_flight += thread.in_flight;
        for (status, count) in thread.refused {
            *metrics.refused.entry(status).or_default() += count;
        }
        for (policy, count) in thread.policies {
            *metrics.policies.entry(policy).or_default() += count;
        }
        for (policy, count) in thread.reported {
            *metrics.reported.entry(policy).or_default() += count;
        }
        for (id, figures) in thread.endpoints {
            endpoints.entry(id).or_default().add(&figures);
        }
    }
    let with_id = |(id, Figures { statuses, buckets, seconds }): (Arc<str>, Figures)| EndpointMetrics {
        id: id.to_string(),
        statuses,
        buckets,
        seconds,
    };
    metrics.endpoints = endpoints.into_iter().map(with_id).collect();
    metrics
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_added() {
        let mut figures = Figures::default();
        figures.count_finished(204, 0.0005);
        figures.count_finished(999, 31.0);
        let thread = |refused| ThreadFigures {
            in_flight: 2,
            refused: BTreeMap::from([(404, refused)]),
            policies: BTreeMap::from([("ip", 2)]),
            reported: BTreeMap::from([("validate", 3)]),
            endpoints: vec![("one".into(), figures.clone())],
        };
        let metrics = sum(vec![thread(1), thread(4)], 7);
        assert_eq!((metrics.connections, metrics.requests_in_flight, metrics.refused[&404]), (7, 4, 5));
        assert_eq!((metrics.policies["ip"], metrics.reported["validate"]), (4, 6));
        let one = &metrics.endpoints[0];
        assert_eq!((one.statuses[2], one.statuses[9], one.buckets[0], one.buckets[15]), (2, 2, 2, 2));
        assert_eq!(one.seconds, 62.001);
    }
}
