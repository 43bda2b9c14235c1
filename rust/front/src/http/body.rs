//! The body of a request as it arrives.
use super::chunks::Chunks;
use crate::request::{Framing, Refusal};

/// What has not arrived yet.
pub enum Body {
    Length(u64),
    Chunked(Chunks),
}

impl Body {
    pub fn new(framing: Framing) -> Self {
        match framing {
            Framing::None => Self::Length(0),
            Framing::Length(length) => Self::Length(length),
            Framing::Chunked => Self::Chunked(Chunks::default()),
        }
    }

    pub fn is_complete(&self) -> bool {
        match self {
            Self::Length(length) => *length == 0,
            Self::Chunked(chunks) => chunks.is_done(),
        }
    }

    /// Takes bytes, and passes on the data among them. Returns how many were taken: those behind the body are not.
    ///
    /// # Errors
    /// When they are not chunks.
    pub fn take(&mut self, bytes: &[u8], mut data: impl FnMut(&[u8])) -> Result<usize, Refusal> {
        match self {
            Self::Length(missing) => {
                let taken = (*missing).min(bytes.len() as u64) as usize;
                *missing -= taken as u64;
                data(&bytes[..taken]);
                Ok(taken)
            }
            Self::Chunked(chunks) => chunks.decode(bytes, data),
        }
    }
}
