//! The time of day, by which credentials expire.
use std::time::SystemTime;

/// Seconds since 1970.
pub fn unix_seconds() -> u64 {
    SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs())
}
