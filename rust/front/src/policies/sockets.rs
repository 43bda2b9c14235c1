//! What may be sent over WebSockets, and from which pages they are opened.
use super::compiled::CompiledSockets;
use super::origins::Origins;

/// Longest message unless told otherwise, bytes.
const MESSAGE_BYTES: usize = 1 << 20;

#[derive(Debug)]
pub struct Sockets {
    origins: Origins,
    /// Longest message, bytes.
    pub max_message_bytes: usize,
    /// Messages of a client in a second; any number without it.
    pub messages_per_second: Option<u32>,
}

impl Sockets {
    pub fn new(compiled: CompiledSockets) -> Self {
        Self {
            origins: Origins::new(compiled.allowed_origins),
            max_message_bytes: compiled.max_message_bytes.unwrap_or(MESSAGE_BYTES),
            messages_per_second: compiled.messages_per_second,
        }
    }

    /// Whether a page of this origin may open one that is not of the same host.
    pub fn allow(&self, origin: &str) -> bool {
        self.origins.allows_any || self.origins.allow(origin)
    }
}

impl Default for Sockets {
    /// The limits of endpoints without the policy.
    fn default() -> Self {
        Self::new(CompiledSockets::default())
    }
}
