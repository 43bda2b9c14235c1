//! Checks a whole request at once.
use std::sync::Arc;

use super::stop::StopFlag;
use super::validator::Validator;
use crate::request::Head;

pub fn check(validator: &Arc<Validator>, head: &Head<'_, '_>, body: &[u8]) {
    let ready = validator.made().unwrap_or_else(|problem| panic!("{problem}"));
    ready.finish(ready.begin(head, &[]), body, &StopFlag::default());
}
