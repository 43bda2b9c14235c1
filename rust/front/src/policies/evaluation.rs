//! How far the policies of a request are evaluated, and what has to be done before they can be evaluated to their end.
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout_at;

use super::key_wait::{KEY_WAIT, KeyWait, KeyWaits};
use super::validate::Validator;

/// What comes next for a request whose policies were evaluated as far as they could be. After each step that is not the
/// last, they are evaluated again.
#[derive(Debug, Default)]
pub enum NextStep {
    /// Nothing: they are evaluated to their end.
    #[default]
    Finish,
    /// The schemas of the policy `validate` are prepared, before anything is counted.
    PrepareSchema(Arc<Validator>),
    /// Others count the request by the rules that do not ask who calls.
    CountRates,
    /// No key verifies its token. `fetches_keys`: the supervisor is asked for new ones. The request is refused unless
    /// it waits and other keys come.
    FindKey { fetches_keys: bool, wait: Option<KeyWait> },
}

/// The policies of a request while they are evaluated.
#[derive(Debug, Default)]
pub struct Evaluation {
    pub next: NextStep,
    /// How long the request has waited for schemas.
    pub waited_for_schema: Duration,
    /// The schemas were not ready in time, and the request does not wait for them any more.
    pub gave_up_schema: bool,
    /// It was counted by the rules that do not ask who calls, or `CountRates` is next.
    pub are_rates_counted: bool,
    /// Header lines of these rules, for the answer.
    pub rate_lines: String,
    /// When it began to wait for a key.
    key_wait_since: Option<Instant>,
}

impl Evaluation {
    /// Waits until schemas are prepared, as long as checks of a request with this timeout may take.
    pub async fn prepare(&mut self, validator: &Arc<Validator>, timeout: Duration) {
        let began = Instant::now();
        let deadline = began + validator.check_time(timeout).saturating_sub(self.waited_for_schema);
        self.gave_up_schema = !timeout_at(deadline.into(), validator.prepare()).await.unwrap_or(false);
        self.waited_for_schema += began.elapsed();
    }

    /// No key verifies the token. `kid`: that of a key which is not known, if the token names one.
    pub fn key_is_missing(&mut self, waits: &Arc<KeyWaits>, kid: Option<&str>) {
        let fetches_keys = waits.claim_fetch();
        let wait = kid.and_then(|kid| {
            let until = *self.key_wait_since.get_or_insert_with(Instant::now) + KEY_WAIT;
            KeyWaits::begin(waits, kid, until)
        });
        self.next = NextStep::FindKey { fetches_keys, wait };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_waits_only_for_a_key_that_its_token_names_and_each_unknown_key_has_keys_fetched() {
        for (kid, waits) in [(None, false), (Some("new"), true)] {
            let mut evaluation = Evaluation::default();
            evaluation.key_is_missing(&Arc::default(), kid);
            let NextStep::FindKey { fetches_keys, wait } = evaluation.next else { panic!("{:?}", evaluation.next) };
            assert_eq!((fetches_keys, wait.is_some()), (true, waits));
        }
    }
}
