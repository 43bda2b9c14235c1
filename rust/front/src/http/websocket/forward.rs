//! A message of a client on its way to the handler: piece by piece, as the handler takes them.
use bytes::Bytes;
use edge_wire::{Kind, MAX_DATA_BYTES, cost};

/// What is left of a message.
pub struct Forward {
    kind: Kind,
    rest: Bytes,
}

impl Forward {
    /// `kind`: of its last piece.
    pub fn new(kind: Kind, message: Bytes) -> Self {
        Self { kind, rest: message }
    }

    /// Bytes of it that are held.
    pub fn held(&self) -> usize {
        self.rest.len()
    }

    /// The next piece, if the handler takes so many bytes. The last one has the kind of the message.
    pub fn next(&mut self, sendable: usize) -> Option<(Kind, Bytes)> {
        let length = self.rest.len();
        if length <= MAX_DATA_BYTES && cost(self.kind, length) <= sendable {
            return Some((self.kind, std::mem::take(&mut self.rest)));
        }
        let is_message = matches!(self.kind, Kind::Text | Kind::Binary);
        let piece = length.min(MAX_DATA_BYTES).min(sendable);
        (piece > 0 && is_message).then(|| (Kind::Data, self.rest.split_to(piece)))
    }
}

#[cfg(test)]
mod tests {
    use edge_wire::HEADER_BYTES;

    use super::*;

    fn kinds(length: usize, sendable: &[usize]) -> Vec<(Kind, usize)> {
        pieces(Kind::Text, length, sendable)
    }

    fn pieces(kind: Kind, length: usize, sendable: &[usize]) -> Vec<(Kind, usize)> {
        let mut forward = Forward::new(kind, vec![0; length].into());
        sendable.iter().filter_map(|&bytes| forward.next(bytes)).map(|(kind, piece)| (kind, piece.len())).collect()
    }

    #[test]
    fn a_message_is_cut_into_pieces_that_the_handler_takes() {
        assert_eq!(kinds(0, &[0, HEADER_BYTES - 1, HEADER_BYTES]), [(Kind::Text, 0)]);
        assert_eq!(kinds(5, &[usize::MAX]), [(Kind::Text, 5)]);
        assert_eq!(kinds(5, &[0, 2, 3, 15, 16]), [(Kind::Data, 2), (Kind::Data, 3), (Kind::Text, 0)]);
        assert_eq!(pieces(Kind::Pong, 5, &[0, 2, 20, 21]), [(Kind::Pong, 5)]);
        let many = [usize::MAX; 3];
        let expected = [(Kind::Data, MAX_DATA_BYTES), (Kind::Data, MAX_DATA_BYTES), (Kind::Text, 1)];
        assert_eq!(kinds(2 * MAX_DATA_BYTES + 1, &many), expected);
    }
}
