//! Tokens that handlers authenticate with: `<endpoint id>.<nonce>.<signature>`. The gateway makes one for each handler
//! process, and the actor host signs it again for this process. It is valid while the handler runs: as long as a file
//! with the name of its nonce is in a folder that handlers cannot reach. The file has the id of the user that the
//! handler runs as, if that is one of its own; others do not get in with its token. A token identifies the endpoint and
//! grants nothing: bindings are looked up with every call.
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::{fs, io};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac::{self, HMAC_SHA256};

const PURPOSE: &str = "service token of a handler process\0";
const UUID_LENGTH: usize = 36;
const MAX_NONCE_LENGTH: usize = 80;

/// A handler process, as its token identifies it.
#[derive(Debug, PartialEq, Eq)]
pub struct HandlerInstance<'a> {
    pub endpoint: &'a str,
    /// Different for each process.
    pub nonce: &'a str,
}

pub struct TokenReader {
    key: hmac::Key,
    /// The folder of the nonces.
    folder: PathBuf,
}

impl TokenReader {
    pub fn new(key: &str, folder: PathBuf) -> Self {
        Self { key: hmac::Key::new(HMAC_SHA256, key.as_bytes()), folder }
    }

    /// Who a token was made for, when a process of this user has sent it; `None` when its signature is invalid, or the
    /// process does not run here, or runs as another user.
    pub fn instance<'a>(&self, token: &'a str, user: u32) -> Option<HandlerInstance<'a>> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (endpoint, nonce) = signed.split_once('.')?;
        let is_well_formed = endpoint.len() == UUID_LENGTH && (1..=MAX_NONCE_LENGTH).contains(&nonce.len());
        // So that the name of the file is one.
        if !is_well_formed || ![endpoint, nonce].into_iter().all(is_hexadecimal) {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        // This compares in constant time.
        hmac::verify(&self.key, format!("{PURPOSE}{signed}").as_bytes(), &signature).ok()?;
        let own = fs::read_to_string(self.folder.join(nonce)).ok()?;
        (own.is_empty() || own.parse() == Ok(user)).then_some(HandlerInstance { endpoint, nonce })
    }

    /// The nonces of the handler processes that run.
    pub fn valid_nonces(&self) -> io::Result<HashSet<OsString>> {
        fs::read_dir(&self.folder)?.map(|entry| Ok(entry?.file_name())).collect()
    }
}

/// Whether a text has only digits and hyphens.
fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENDPOINT: &str = "0f8fad5b-d9cb-469f-a165-70867728950e";
    const USER: u32 = 1_001;
    /// The signature that `signServiceToken` makes with `tokenSigner`.
    const SIGNATURE: &str = "xsO3FTcF3QruTjv7tRhTU9OzpwKtKnTZnWJHGb73YbA";

    #[test]
    fn tokens_are_those_of_the_actor_host_and_end_with_their_file() {
        let folder = std::env::temp_dir().join(format!("tokens-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("1f-2e"), "").unwrap();
        let reader = TokenReader::new("a key", folder.clone());
        let token = format!("{ENDPOINT}.1f-2e.{SIGNATURE}");
        let instance = Some(HandlerInstance { endpoint: ENDPOINT, nonce: "1f-2e" });
        assert_eq!(reader.instance(&token, USER), instance);
        assert_eq!(TokenReader::new("another", folder.clone()).instance(&token, USER), None);
        let changed = [("1f-2e", "1f-2d"), ("0f8", "1f8"), ("1f-2e", ".."), ("1f-2e", "../a"), ("1f-2e", "")];
        for (part, other) in changed {
            assert_eq!(reader.instance(&token.replacen(part, other, 1), USER), None);
        }
        for wrong in ["", ENDPOINT, &token[..token.len() - 1], &format!("{token}A"), &"\u{e4}.".repeat(40)] {
            assert_eq!(reader.instance(wrong, USER), None);
        }
        fs::write(folder.join("1f-2e"), USER.to_string()).unwrap();
        assert_eq!(reader.instance(&token, USER), instance);
        assert_eq!(reader.instance(&token, 1_002), None);
        assert_eq!(reader.instance(&token, 0), None);
        fs::write(folder.join("1f-2e"), "anyone").unwrap();
        assert_eq!(reader.instance(&token, USER), None);
        assert_eq!(reader.valid_nonces().unwrap(), HashSet::from(["1f-2e".into()]));
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(reader.instance(&token, USER), None);
    }
}
