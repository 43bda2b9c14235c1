//! What is to be done before the policies of a request can be evaluated to their end.
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use super::key_wait::{KEY_WAIT, KeyWait, KeyWaits};
use super::validate::Validator;

/// The steps that a request still needs. After each, its policies are evaluated again.
#[derive(Debug, Default)]
pub struct PendingSteps {
    /// First of all: the policy `validate`, whose schemas are to be prepared before anything is counted.
    pub prepare_schema: Option<Arc<Validator>>,
    /// How long the request has waited for that.
    pub waited_for_schema: Duration,
    /// The schemas were not ready in time, and the request does not wait for them any more.
    pub gave_up_schema: bool,
    /// Then: others are to count the request by the rules that do not ask who calls.
    pub count_rates: bool,
    /// It was counted by these rules, or `count_rates` says that it is to be.
    pub are_rates_counted: bool,
    /// Header lines of these rules, for the answer.
    pub rate_lines: String,
    /// The supervisor is to be asked for new keys.
    pub fetch_keys: bool,
    /// At last: the request waits for the key of its token.
    pub wait_for_key: Option<KeyWait>,
    /// When it began to wait for a key.
    key_wait_since: Option<Instant>,
}

impl PendingSteps {
    /// Waits until schemas are prepared, as long as checks of a request with this timeout may take.
    pub async fn prepare(&mut self, validator: &Arc<Validator>, timeout: Duration) {
        let began = Instant::now();
        let deadline = began + validator.check_time(timeout).saturating_sub(self.waited_for_schema);
        self.gave_up_schema = !timeout_at(deadline.into(), validator.prepare()).await.unwrap_or(false);
        self.waited_for_schema += began.elapsed();
    }

    /// No key verifies the token. `kid`: that of a key which is not known, if the token names one.
    pub fn key_is_missing(&mut self, waits: &Arc<KeyWaits>, kid: Option<&str>) {
        self.fetch_keys = waits.claim_fetch();
        if let Some(kid) = kid {
            let until = *self.key_wait_since.get_or_insert_with(Instant::now) + KEY_WAIT;
            self.wait_for_key = KeyWaits::begin(waits, kid, until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_only_for_a_key_that_its_token_names_and_each_unknown_key_has_keys_fetched() {
        for (kid, waits) in [(None, false), (Some("new"), true)] {
            let mut pending = PendingSteps::default();
            pending.key_is_missing(&Arc::default(), kid);
            assert_eq!((pending.fetch_keys, pending.wait_for_key.is_some()), (true, waits));
        }
    }
}
