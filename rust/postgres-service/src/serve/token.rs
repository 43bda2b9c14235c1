//! Tokens that handlers authenticate with: the actor host makes one for each endpoint, this process verifies it. A
//! token identifies the endpoint and grants nothing: bindings are looked up with every call.
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

const PURPOSE: &[u8] = b"service token of an endpoint\0";
const UUID_LENGTH: usize = 36;

pub struct TokenReader(Hmac<Sha256>);

impl TokenReader {
    pub fn new(key: &str) -> Self {
        // A key of any length is one.
        Self(Hmac::new_from_slice(key.as_bytes()).unwrap_or_else(|_| unreachable!()))
    }

    /// The endpoint id of a token, which is followed by its signature; `None` when that is not valid.
    pub fn endpoint<'a>(&self, token: &'a str) -> Option<&'a str> {
        let (endpoint, rest) = token.split_at_checked(UUID_LENGTH)?;
        let signature = URL_SAFE_NO_PAD.decode(rest.strip_prefix('.')?).ok()?;
        let mut signed = self.0.clone();
        signed.update(PURPOSE);
        signed.update(endpoint.as_bytes());
        // In constant time.
        signed.verify_slice(&signature).ok()?;
        Some(endpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";

    #[test]
    fn tokens_are_those_of_the_actor_host() {
        let reader = TokenReader::new("a key");
        // Of `makeServiceToken` with `tokenSigner`.
        let token = format!("{ENDPOINT}.Ycj6zgs-F96_bqxlzfu78pdBiQ7V38llXGTv3xB61Co");
        assert_eq!(reader.endpoint(&token), Some(ENDPOINT));
        assert_eq!(TokenReader::new("another").endpoint(&token), None);
        assert_eq!(reader.endpoint(&token.replacen('0', "1", 1)), None);
        for wrong in ["", ENDPOINT, &token[..token.len() - 1], &format!("{token}A"), &"ä".repeat(40)] {
            assert_eq!(reader.endpoint(wrong), None);
        }
    }
}
