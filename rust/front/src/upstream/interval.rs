//! What became of the requests of an endpoint in the current interval, by version.
use std::cell::{Cell, RefCell};
use std::time::Duration;

use crate::durations::Durations;
use crate::messages::{EndpointInterval, VersionInterval};

/// An endpoint in the current interval, in one thread.
#[derive(Default)]
pub struct Interval {
    /// The most requests at a time, of all threads.
    in_flight: Cell<u32>,
    versions: RefCell<Vec<VersionFigures>>,
}

struct VersionFigures {
    /// The version of the handler; `None` when no handler got the requests.
    version: Option<u32>,
    /// Requests by class of status: at 2 those with 200 to 299, at 0 those of no class.
    statuses: [u32; 6],
    durations: Durations,
}

impl Interval {
    /// A request has begun; `in_flight` with it.
    pub fn request_began(&self, in_flight: u32) {
        self.in_flight.set(self.in_flight.get().max(in_flight));
    }

    /// Whether it is the first one that is counted in the interval.
    pub fn count_finished(&self, version: Option<u32>, status: u16, duration: Duration) -> bool {
        let mut versions = self.versions.borrow_mut();
        let is_first = versions.is_empty();
        let at = versions.iter().position(|one| one.version == version).unwrap_or_else(|| {
            versions.push(VersionFigures { version, statuses: [0; 6], durations: Durations::default() });
            versions.len() - 1
        });
        let VersionFigures { statuses, durations, .. } = &mut versions[at];
        let class = usize::from(status / 100);
        statuses[if class < statuses.len() { class } else { 0 }] += 1;
        durations.add(duration);
        is_first
    }

    /// Ends the interval; `in_flight`: those that the next one begins with.
    pub fn take(&self, id: &str, in_flight: u32) -> EndpointInterval {
        let version_message = |VersionFigures { version, statuses, durations }: VersionFigures| {
            let (buckets, counts) = durations.counts().unzip();
            VersionInterval { version, statuses, buckets, counts }
        };
        EndpointInterval {
            id: id.to_owned(),
            in_flight: self.in_flight.replace(in_flight),
            versions: self.versions.take().into_iter().map(version_message).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_counted_apart_until_they_are_told() {
        let interval = Interval::default();
        interval.request_began(3);
        interval.request_began(1);
        let finished = |version, status| interval.count_finished(version, status, Duration::from_millis(1));
        assert!(finished(Some(1), 200));
        assert!(!finished(Some(1), 204) && !finished(Some(2), 500) && !finished(None, 999));
        let message = interval.take("one", 2);
        assert_eq!((&*message.id, message.in_flight), ("one", 3));
        let of =
            |at: usize| (message.versions[at].version, message.versions[at].statuses, &message.versions[at].counts[..]);
        assert_eq!(of(0), (Some(1), [0, 0, 2, 0, 0, 0], &[2][..]));
        assert_eq!(of(1), (Some(2), [0, 0, 0, 0, 0, 1], &[1][..]));
        assert_eq!(of(2), (None, [1, 0, 0, 0, 0, 0], &[1][..]));
        assert!(finished(Some(1), 200));
        assert_eq!(interval.take("one", 0).in_flight, 2);
    }
}
