//! The requests in flight on a connection to a handler, by number.
use std::rc::Rc;
use std::time::Instant;

use super::reply::Reply;

const SLOT_BITS: u32 = 16;
/// Requests that can be in flight on one connection.
pub const MAX_IN_FLIGHT: usize = 1 << SLOT_BITS;

/// A request that is not answered yet.
pub struct Pending {
    pub reply: Rc<Reply>,
    pub deadline: Instant,
}

#[derive(Default)]
struct Slot {
    /// How often it has been used, so that numbers repeat late.
    uses: u16,
    pending: Option<Pending>,
}

/// A number has 32 bits: the uses of a slot, and the slot.
#[derive(Default)]
pub struct InFlight {
    slots: Vec<Slot>,
    free: Vec<u16>,
}

impl InFlight {
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Adds a request and returns its number; `None` when there are too many.
    pub fn add(&mut self, pending: Pending) -> Option<u32> {
        let at = match self.free.pop() {
            Some(at) => at,
            None if self.slots.len() == MAX_IN_FLIGHT => return None,
            None => {
                self.slots.push(Slot::default());
                (self.slots.len() - 1) as u16
            }
        };
        let slot = &mut self.slots[usize::from(at)];
        slot.uses = slot.uses.wrapping_add(1);
        slot.pending = Some(pending);
        Some(u32::from(slot.uses) << SLOT_BITS | u32::from(at))
    }

    pub fn has(&self, number: u32) -> bool {
        let slot = self.slots.get(usize::from(number as u16));
        slot.is_some_and(|slot| u32::from(slot.uses) == number >> SLOT_BITS && slot.pending.is_some())
    }

    pub fn take(&mut self, number: u32) -> Option<Pending> {
        let at = number as u16;
        let slot = self.slots.get_mut(usize::from(at))?;
        if u32::from(slot.uses) != number >> SLOT_BITS {
            return None;
        }
        let pending = slot.pending.take()?;
        self.free.push(at);
        Some(pending)
    }

    /// Takes all requests that meet a condition.
    pub fn take_if(&mut self, condition: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let mut taken = Vec::new();
        for (at, slot) in self.slots.iter_mut().enumerate() {
            if let Some(pending) = slot.pending.take_if(|pending| condition(pending)) {
                self.free.push(at as u16);
                taken.push(pending);
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;
    use std::time::Duration;

    use super::*;

    fn pending(deadline: Instant) -> Pending {
        Pending { reply: Reply::new(Waker::noop().clone()), deadline }
    }

    #[test]
    fn numbers_are_not_those_of_before() {
        let now = Instant::now();
        let mut in_flight = InFlight::default();
        let first = in_flight.add(pending(now)).unwrap();
        assert!(in_flight.has(first) && !in_flight.has(first ^ 1));
        assert!(in_flight.take(first).is_some() && in_flight.take(first).is_none() && !in_flight.has(first));
        let second = in_flight.add(pending(now)).unwrap();
        assert_ne!(first, second);
        assert!(in_flight.take(first).is_none() && in_flight.take(second ^ 1).is_none());
        assert_eq!(in_flight.len(), 1);
    }

    #[test]
    fn those_past_their_deadline_are_taken() {
        let now = Instant::now();
        let mut in_flight = InFlight::default();
        let late = in_flight.add(pending(now)).unwrap();
        let early = in_flight.add(pending(now + Duration::from_secs(1))).unwrap();
        assert_eq!(in_flight.take_if(|pending| pending.deadline <= now).len(), 1);
        assert!(in_flight.take(late).is_none() && in_flight.take(early).is_some());
        assert_eq!(in_flight.len(), 0);
    }

    #[test]
    fn there_is_a_limit() {
        let now = Instant::now();
        let mut in_flight = InFlight::default();
        for _ in 0..MAX_IN_FLIGHT {
            assert!(in_flight.add(pending(now)).is_some());
        }
        assert!(in_flight.add(pending(now)).is_none());
    }
}
