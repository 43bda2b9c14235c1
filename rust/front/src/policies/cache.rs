//! What is made of policies when requests need it: compiled schemas and patterns, and tokens that were verified. All of
//! it has a limit together. Beyond that, the domain that has most loses what it has not used lately, which is made
//! again when it is needed: first of what takes more than its part of the domain. So no domain takes from one that has
//! less than its part, and no policy from a smaller one.
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

static CACHE: LazyLock<Cache> = LazyLock::new(|| Cache::new(usize::MAX));

/// Sets the limit, in bytes. It is called before policies come.
pub fn set_cache_limit(bytes: usize) {
    CACHE.limit.store(bytes, Ordering::Relaxed);
}

/// Counts what was made for a domain, or has grown. Others are made to forget what is too much; this one is not,
/// however large it is.
pub fn keep(made: &Arc<dyn Cached>, domain: &Arc<str>) {
    CACHE.keep(made, domain);
}

/// Something that can be made again.
pub trait Cached: Send + Sync {
    /// How much memory it takes, roughly; 0 when it is not made.
    fn bytes(&self) -> usize;
    /// Whether it was used since this was asked the last time.
    fn take_used(&self) -> bool;
    fn forget(&self);
}

struct Cache {
    limit: AtomicUsize,
    domains: Mutex<HashMap<Arc<str>, Entries>>,
}

/// The entries of a domain: what may go first is in front.
type Entries = VecDeque<Weak<dyn Cached>>;

impl Cache {
    fn new(limit: usize) -> Self {
        Self { limit: AtomicUsize::new(limit), domains: Mutex::default() }
    }

    fn keep(&self, made: &Arc<dyn Cached>, domain: &Arc<str>) {
        let mut domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        let of_domain = domains.entry(domain.clone()).or_default();
        if !of_domain.iter().any(|known| is_same(known, made)) {
            of_domain.push_back(Arc::downgrade(made));
        }
        domains.retain(|_, entries| {
            entries.retain(|entry| bytes(entry) > 0);
            !entries.is_empty()
        });
        let limit = self.limit.load(Ordering::Relaxed);
        loop {
            // Anew each time: what several have is counted in parts.
            let sizes = domains.iter().map(|(name, entries)| (entries.iter().map(bytes).sum::<usize>(), name.clone()));
            let sizes: Vec<_> = sizes.collect();
            if sizes.iter().map(|(bytes, _)| bytes).sum::<usize>() <= limit {
                return;
            }
            let Some((_, largest)) = sizes.into_iter().max() else { return };
            let Some(entries) = domains.get_mut(&largest) else { return };
            let Some(unused) = take_unused(entries, made) else { return };
            unused.forget();
        }
    }
}

/// Takes what has not been used for longest: of what takes more than an equal part, if that is possible.
fn take_unused(entries: &mut Entries, made: &Arc<dyn Cached>) -> Option<Arc<dyn Cached>> {
    let part = entries.iter().map(bytes).sum::<usize>() / entries.len().max(1);
    take_unused_of(entries, made, part).or_else(|| take_unused_of(entries, made, 0))
}

/// Takes something of at least so many bytes, as the clock algorithm finds it: what was used gets a second chance.
fn take_unused_of(entries: &mut Entries, made: &Arc<dyn Cached>, least: usize) -> Option<Arc<dyn Cached>> {
    for _ in 0..2 * entries.len() {
        let entry = entries.pop_front()?;
        match entry.upgrade() {
            Some(held) if is_same(&entry, made) || held.bytes() < least || held.take_used() => {
                entries.push_back(entry);
            }
            Some(held) => return Some(held),
            None => {}
        }
    }
    None
}

fn is_same(entry: &Weak<dyn Cached>, made: &Arc<dyn Cached>) -> bool {
    std::ptr::addr_eq(entry.as_ptr(), Arc::as_ptr(made))
}

fn bytes(entry: &Weak<dyn Cached>) -> usize {
    entry.upgrade().map_or(0, |held| held.bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    struct Made {
        bytes: AtomicUsize,
        is_used: AtomicBool,
    }

    impl Cached for Made {
        fn bytes(&self) -> usize {
            self.bytes.load(Ordering::Relaxed)
        }

        fn take_used(&self) -> bool {
            self.is_used.swap(false, Ordering::Relaxed)
        }

        fn forget(&self) {
            self.bytes.store(0, Ordering::Relaxed);
        }
    }

    fn made(cache: &Cache, domain: &str, bytes: usize) -> Arc<Made> {
        let made = Arc::new(Made { bytes: AtomicUsize::new(bytes), is_used: AtomicBool::new(false) });
        cache.keep(&(made.clone() as Arc<dyn Cached>), &domain.into());
        made
    }

    fn sizes<const COUNT: usize>(all: [&Arc<Made>; COUNT]) -> [usize; COUNT] {
        all.map(|made| made.bytes())
    }

    #[test]
    fn the_domain_with_most_loses_what_it_has_not_used() {
        let cache = Cache::new(100);
        let small = made(&cache, "small", 30);
        let first = made(&cache, "large", 30);
        let second = made(&cache, "large", 30);
        first.is_used.store(true, Ordering::Relaxed);
        let third = made(&cache, "large", 30);
        assert_eq!(sizes([&small, &first, &second, &third]), [30, 30, 0, 30]);
        // It was used only before that.
        let fourth = made(&cache, "large", 30);
        assert_eq!(sizes([&small, &first, &third, &fourth]), [30, 30, 0, 30]);
        let fifth = made(&cache, "large", 30);
        assert_eq!(sizes([&small, &first, &fourth, &fifth]), [30, 0, 30, 30]);
    }

    #[test]
    fn what_is_new_stays_and_takes_nothing_from_a_domain_that_has_less() {
        let cache = Cache::new(100);
        let small = made(&cache, "small", 30);
        let huge = made(&cache, "huge", 90);
        assert_eq!(sizes([&small, &huge]), [30, 90]);
        let other = made(&cache, "other", 40);
        assert_eq!(sizes([&small, &huge, &other]), [30, 0, 40]);
    }

    #[test]
    fn what_takes_more_than_its_part_of_a_domain_goes_first() {
        let cache = Cache::new(100);
        let small = made(&cache, "one", 10);
        let first = made(&cache, "one", 45);
        let second = made(&cache, "one", 45);
        for used in [&first, &second] {
            used.is_used.store(true, Ordering::Relaxed);
        }
        let third = made(&cache, "one", 45);
        assert_eq!(sizes([&small, &first, &second, &third]), [10, 0, 45, 45]);
        let all = made(&cache, "one", 95);
        assert_eq!(sizes([&small, &second, &third, &all]), [0, 0, 0, 95]);
    }

    #[test]
    fn what_is_gone_is_not_counted() {
        let cache = Cache::new(100);
        drop(made(&cache, "one", 90));
        let next = made(&cache, "one", 90);
        let grown = made(&cache, "other", 5);
        grown.bytes.store(20, Ordering::Relaxed);
        assert_eq!(sizes([&next, &grown]), [90, 20]);
        cache.keep(&(grown.clone() as Arc<dyn Cached>), &"other".into());
        assert_eq!(sizes([&next, &grown]), [0, 20]);
        assert_eq!(cache.domains.lock().unwrap().values().map(VecDeque::len).sum::<usize>(), 1);
    }
}
