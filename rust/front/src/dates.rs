//! The header `Date` of responses.
use std::cell::{Cell, RefCell};
use std::time::{SystemTime, UNIX_EPOCH};

/// The current date as text, which changes once a second.
#[derive(Default)]
pub struct Dates {
    second: Cell<u64>,
    text: RefCell<String>,
}

impl Dates {
    /// Gives the current date to `add`.
    pub fn with_now(&self, add: &mut impl FnMut(&[u8])) {
        let now = SystemTime::now();
        let second = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.second.replace(second) != second {
            *self.text.borrow_mut() = httpdate::fmt_http_date(now);
        }
        add(self.text.borrow().as_bytes());
    }
}
