//! What a handler takes besides whole requests. It says so when it becomes ready, because those made with an earlier
//! SDK know only some kinds of frames.

/// What a handler takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// Whole requests only.
    Whole,
    /// Requests whose body follows, too.
    Streams,
    /// WebSockets, too.
    Websockets,
}

impl Takes {
    /// What a handler writes to its control stream when it listens.
    pub fn ready_line(self) -> &'static str {
        match self {
            Takes::Whole => "ready\n",
            Takes::Streams => "ready streams\n",
            Takes::Websockets => "ready websockets\n",
        }
    }
}
