//! Request ids: new ones, and whether that of a client is used.
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read};

/// Safe in a log line, a header and a URL.
pub fn is_usable(id: &[u8]) -> bool {
    let is_safe = |&byte: &u8| byte.is_ascii_alphanumeric() || b"_.:+/=-".contains(&byte);
    (1..=128).contains(&id.len()) && id.iter().all(is_safe)
}

/// Makes ids: a counter behind a random beginning is cheaper than random digits for each request.
pub struct RequestIds {
    beginning: String,
    count: Cell<u64>,
}

impl RequestIds {
    /// # Errors
    /// When the system has no random numbers.
    pub fn new() -> io::Result<Self> {
        let mut random = [0; 9];
        File::open("/dev/urandom")?.read_exact(&mut random)?;
        let beginning = random.iter().map(|byte| format!("{byte:02x}")).collect::<String>() + "-";
        Ok(Self { beginning, count: Cell::new(0) })
    }

    /// An id that is used for nothing else.
    pub fn next(&self) -> String {
        let count = self.count.get();
        self.count.set(count + 1);
        let mut id = String::with_capacity(self.beginning.len() + 20);
        id.push_str(&self.beginning);
        id.push_str(itoa::Buffer::new().format(count));
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_clients_are_used_if_they_are_safe() {
        for id in ["a", "A-1_b.c:d+e/f=", &"x".repeat(128)] {
            assert!(is_usable(id.as_bytes()), "{id}");
        }
        for id in ["", "a b", "a\"", "ü", &"x".repeat(129)] {
            assert!(!is_usable(id.as_bytes()), "{id}");
        }
    }

    #[test]
    fn new_ids_differ_and_are_usable() {
        let ids = RequestIds::new().unwrap();
        let (one, other) = (ids.next(), ids.next());
        assert!(one != other && is_usable(one.as_bytes()));
    }
}
