//! WebSockets: the front speaks the protocol with the client, and exchanges messages with the handler.
mod codec;
