//! The requests in flight on a connection to a handler, by number.
use std::rc::Rc;
use std::time::Instant;

use super::reply::Reply;
use super::stream_buffer::StreamBuffer;
use super::upload::SendCredit;
use crate::memory::MemoryShare;

const SLOT_BITS: u32 = 16;
/// Requests that can be in flight on one connection.
pub const MAX_IN_FLIGHT: usize = 1 << SLOT_BITS;

/// A request that is not answered yet.
pub struct Pending {
    pub reply: Rc<Reply>,
    /// When its time is over; none while its body is still arriving.
    pub deadline: Option<Instant>,
    /// It asks for a WebSocket.
    pub is_socket: bool,
}

#[derive(Default)]
struct Slot {
    /// How often it has been used, so that numbers repeat late.
    uses: u16,
    state: SlotState,
    /// The body that is still being sent.
    body: Option<Rc<SendCredit>>,
}

#[derive(Default)]
enum SlotState {
    #[default]
    Free,
    Pending(Pending),
    /// Past its deadline. An answer may still come, and must not be taken for that of another request.
    Expired,
    /// Its answer is arriving piece by piece.
    Streaming(Rc<StreamBuffer>),
    /// Nobody wants the rest of its answer: the handler was told, and may still send so many bytes until it confirms.
    Dropped {
        credit: usize,
    },
}

/// A stream that a frame is about.
pub enum StreamState<'a> {
    Open(&'a Rc<StreamBuffer>),
    /// The bytes that may still come of it.
    Dropped(&'a mut usize),
}

/// A number has 32 bits: the uses of a slot, and the slot.
#[derive(Default)]
pub struct InFlight {
    slots: Vec<Slot>,
    free: Vec<u16>,
    pending: usize,
}

impl InFlight {
    /// Requests that are waited for, or whose answers are arriving.
    pub fn len(&self) -> usize {
        self.pending
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
        slot.state = SlotState::Pending(pending);
        self.pending += 1;
        Some(u32::from(slot.uses) << SLOT_BITS | u32::from(at))
    }

    /// Adds a request whose body follows.
    pub fn add_opened(&mut self, pending: Pending, body: Rc<SendCredit>) -> Option<u32> {
        let number = self.add(pending)?;
        self.slots[usize::from(number as u16)].body = Some(body);
        Some(number)
    }

    /// The body of this number, if it is still being sent.
    pub fn body(&self, number: u32) -> Option<&Rc<SendCredit>> {
        self.slots.get(usize::from(number as u16)).filter(|slot| slot.has(number))?.body.as_ref()
    }

    /// No more of this body is sent.
    pub fn take_body(&mut self, number: u32) -> Option<Rc<SendCredit>> {
        self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number))?.body.take()
    }

    /// All that are still being sent.
    pub fn take_bodies(&mut self) -> Vec<Rc<SendCredit>> {
        self.slots.iter_mut().filter_map(|slot| slot.body.take()).collect()
    }

    /// The requests whose body is still being sent, and that are not answered yet.
    pub fn opened(&self) -> Vec<u32> {
        let opened = self.slots.iter().enumerate().filter(|(_, slot)| slot.body.is_some() && slot.is_pending());
        opened.map(|(at, slot)| u32::from(slot.uses) << SLOT_BITS | at as u32).collect()
    }

    /// The time for the answer to a request, once it has been sent.
    pub fn set_deadline(&mut self, number: u32, deadline: Instant) {
        let slot = self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number));
        if let Some(Slot { state: SlotState::Pending(pending), .. }) = slot {
            pending.deadline = Some(deadline);
        }
    }

    /// Nobody waits for the answer to a request any more. It may still come.
    pub fn abandon(&mut self, number: u32) -> Option<Pending> {
        let slot = self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number))?;
        let pending = slot.take_if(|_| true)?;
        self.pending -= 1;
        Some(pending)
    }

    pub fn has(&self, number: u32) -> bool {
        let slot = self.slots.get(usize::from(number as u16));
        slot.is_some_and(|slot| slot.has(number) && slot.is_pending())
    }

    /// Takes a request that is waited for.
    pub fn take(&mut self, number: u32) -> Option<Pending> {
        let slot = self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number))?;
        let pending = slot.take_if(|_| true)?;
        slot.state = SlotState::Free;
        self.free.push(number as u16);
        self.pending -= 1;
        Some(pending)
    }

    /// The answer to a request past its deadline has come. Returns false when there is none of this number.
    pub fn answered_late(&mut self, number: u32) -> bool {
        let slot = self.slots.get_mut(usize::from(number as u16));
        let Some(slot) = slot.filter(|slot| slot.has(number) && matches!(slot.state, SlotState::Expired)) else {
            return false;
        };
        slot.state = SlotState::Free;
        slot.body = None;
        self.free.push(number as u16);
        true
    }

    /// The answer to a request begins; what gets the rest of it, which takes memory of `share`. `None` if it is not
    /// waited for.
    pub fn begin_stream(&mut self, number: u32, share: MemoryShare) -> Option<(Pending, Rc<StreamBuffer>)> {
        let slot = self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number))?;
        let pending = slot.take_if(|_| true)?;
        let buffer = StreamBuffer::new(share, pending.is_socket);
        slot.state = SlotState::Streaming(buffer.clone());
        Some((pending, buffer))
    }

    /// The answer to a request past its deadline begins, which nobody wants. Returns false when there is none of this
    /// number.
    pub fn begin_late(&mut self, number: u32, credit: usize) -> bool {
        let slot = self.slots.get_mut(usize::from(number as u16));
        let Some(slot) = slot.filter(|slot| slot.has(number) && matches!(slot.state, SlotState::Expired)) else {
            return false;
        };
        slot.state = SlotState::Dropped { credit };
        slot.body = None;
        true
    }

    /// The stream of this number.
    pub fn stream(&mut self, number: u32) -> Option<StreamState<'_>> {
        let slot = self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number))?;
        match &mut slot.state {
            SlotState::Streaming(buffer) => Some(StreamState::Open(buffer)),
            SlotState::Dropped { credit } => Some(StreamState::Dropped(credit)),
            _ => None,
        }
    }

    /// Nobody wants the rest of a stream. Returns false when it has ended already.
    pub fn drop_stream(&mut self, number: u32) -> bool {
        let slot = self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number));
        let Some(Slot { state, .. }) = slot else { return false };
        let SlotState::Streaming(buffer) = state else { return false };
        *state = SlotState::Dropped { credit: buffer.credit() };
        self.pending -= 1;
        true
    }

    /// The handler has ended a stream. Returns false when there is none of this number.
    pub fn end_stream(&mut self, number: u32) -> bool {
        let slot = self.slots.get_mut(usize::from(number as u16)).filter(|slot| slot.has(number));
        let Some(slot) = slot else { return false };
        match slot.state {
            SlotState::Streaming(_) => self.pending -= 1,
            SlotState::Dropped { .. } => {}
            _ => return false,
        }
        slot.state = SlotState::Free;
        self.free.push(number as u16);
        true
    }

    /// The streams that are arriving, with their numbers.
    pub fn streams(&self) -> Vec<(u32, Rc<StreamBuffer>)> {
        let streams = self.slots.iter().enumerate().filter_map(|(at, slot)| match &slot.state {
            SlotState::Streaming(buffer) => Some((u32::from(slot.uses) << SLOT_BITS | at as u32, buffer.clone())),
            _ => None,
        });
        streams.collect()
    }

    /// Takes the requests that meet a condition. Their answers may still come.
    pub fn expire(&mut self, condition: impl Fn(&Pending) -> bool) -> Vec<Pending> {
        let taken: Vec<_> = self.slots.iter_mut().filter_map(|slot| slot.take_if(&condition)).collect();
        self.pending -= taken.len();
        taken
    }
}

impl Slot {
    fn has(&self, number: u32) -> bool {
        u32::from(self.uses) == number >> SLOT_BITS
    }

    fn is_pending(&self) -> bool {
        matches!(self.state, SlotState::Pending(_))
    }

    /// Its request, which has expired then.
    fn take_if(&mut self, condition: impl Fn(&Pending) -> bool) -> Option<Pending> {
        match std::mem::replace(&mut self.state, SlotState::Expired) {
            SlotState::Pending(pending) if condition(&pending) => Some(pending),
            other => {
                self.state = other;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;
    use std::time::Duration;

    use super::*;
    use crate::memory::MemoryBudget;

    fn pending(deadline: Instant) -> Pending {
        Pending { reply: Reply::new(Waker::noop().clone()), deadline: Some(deadline), is_socket: false }
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
    fn requests_past_their_deadline_are_taken_and_their_numbers_kept() {
        let now = Instant::now();
        let mut in_flight = InFlight::default();
        let late = in_flight.add(pending(now)).unwrap();
        let early = in_flight.add(pending(now + Duration::from_secs(1))).unwrap();
        assert_eq!(in_flight.expire(|pending| pending.deadline.is_some_and(|deadline| deadline <= now)).len(), 1);
        assert!(!in_flight.has(late) && in_flight.take(late).is_none());
        assert!(in_flight.take(early).is_some() && !in_flight.answered_late(early));
        assert_eq!(in_flight.len(), 0);
        // Its number is not used for another one before its answer has come, once.
        let other = in_flight.add(pending(now)).unwrap();
        assert_ne!(other as u16, late as u16);
        assert!(in_flight.answered_late(late) && !in_flight.answered_late(late));
        assert_eq!(in_flight.add(pending(now)).unwrap() as u16, late as u16);
    }

    #[test]
    fn the_body_of_a_request_past_its_deadline_is_not_that_of_the_next() {
        let now = Instant::now();
        for begins_stream in [false, true] {
            let mut in_flight = InFlight::default();
            let late = in_flight.add_opened(pending(now), SendCredit::new()).unwrap();
            assert_eq!(in_flight.expire(|_| true).len(), 1);
            assert!(if begins_stream { in_flight.begin_late(late, 1) } else { in_flight.answered_late(late) });
            assert!(!begins_stream || in_flight.end_stream(late));
            let next = in_flight.add(pending(now)).unwrap();
            assert_eq!(next as u16, late as u16);
            assert!(in_flight.body(next).is_none() && in_flight.opened().is_empty());
        }
    }

    #[test]
    fn a_stream_has_its_number_until_the_handler_ends_it() {
        let now = Instant::now();
        let memory = Arc::new(MemoryBudget::new(0));
        let share = || MemoryShare::new(memory.clone(), None);
        let mut in_flight = InFlight::default();
        let number = in_flight.add(pending(now)).unwrap();
        assert!(in_flight.stream(number).is_none() && !in_flight.end_stream(number));
        assert!(in_flight.begin_stream(number, share()).is_some());
        assert!(in_flight.begin_stream(number, share()).is_none() && in_flight.take(number).is_none());
        assert_eq!((in_flight.expire(|_| true).len(), in_flight.len()), (0, 1));
        assert_eq!(in_flight.streams().len(), 1);
        assert!(in_flight.drop_stream(number) && !in_flight.drop_stream(number));
        assert!(matches!(in_flight.stream(number), Some(StreamState::Dropped(_))));
        assert_eq!((in_flight.streams().len(), in_flight.len()), (0, 0));
        assert_ne!(in_flight.add(pending(now)).unwrap() as u16, number as u16);
        assert!(in_flight.end_stream(number) && !in_flight.end_stream(number));
        assert_eq!(in_flight.add(pending(now)).unwrap() as u16, number as u16);
        // One that begins past its deadline.
        let late = in_flight.add(pending(now)).unwrap();
        assert!(!in_flight.begin_late(late, 1));
        in_flight.expire(|_| true);
        assert!(in_flight.begin_late(late, 1) && in_flight.end_stream(late));
    }

    #[test]
    fn requests_in_flight_are_limited() {
        let now = Instant::now();
        let mut in_flight = InFlight::default();
        for _ in 0..MAX_IN_FLIGHT {
            assert!(in_flight.add(pending(now)).is_some());
        }
        assert!(in_flight.add(pending(now)).is_none());
    }
}
