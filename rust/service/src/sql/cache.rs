//! What is known of statements by their text, because handlers repeat few and short ones.
use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// Limits of the cache.
const REMEMBERED: usize = 1_000;
const REMEMBERED_LENGTH: usize = 20_000;

/// `T` is a text that can be shared.
pub struct Cache<T, S> {
    known: HashMap<T, S>,
    /// Oldest first.
    order: VecDeque<T>,
}

impl<T, S> Default for Cache<T, S> {
    fn default() -> Self {
        Self { known: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T: Borrow<str> + Clone + Eq + Hash, S: Clone> Cache<T, S> {
    /// What is known of a statement; `scan` finds it out, and returns its text with it.
    pub fn get(&mut self, sql: &str, scan: impl FnOnce() -> (T, S)) -> S {
        if let Some(known) = self.known.get(sql) {
            return known.clone();
        }
        let (text, scanned) = scan();
        if sql.len() <= REMEMBERED_LENGTH {
            if self.known.len() >= REMEMBERED {
                if let Some(oldest) = self.order.pop_front() {
                    self.known.remove(oldest.borrow());
                }
            }
            self.order.push_back(text.clone());
            self.known.insert(text, scanned.clone());
        }
        scanned
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;

    fn scan(cache: &mut Cache<Rc<str>, Rc<str>>, sql: &str) -> Rc<str> {
        cache.get(sql, || {
            let text: Rc<str> = sql.into();
            (text.clone(), text)
        })
    }

    #[test]
    fn same_text_is_the_same_allocation_while_it_is_cached() {
        let mut cache = Cache::default();
        let first = scan(&mut cache, "SELECT ? -- same");
        assert!(Rc::ptr_eq(&first, &scan(&mut cache, "SELECT ? -- same")));
        let long = format!("SELECT ? -- {}", "x".repeat(REMEMBERED_LENGTH));
        assert!(!Rc::ptr_eq(&scan(&mut cache, &long), &scan(&mut cache, &long)));
        for i in 0..REMEMBERED {
            scan(&mut cache, &format!("SELECT {i}"));
        }
        assert!(!Rc::ptr_eq(&first, &scan(&mut cache, "SELECT ? -- same")));
        assert_eq!((cache.known.len(), cache.order.len()), (REMEMBERED, REMEMBERED));
    }
}
