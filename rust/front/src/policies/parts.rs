//! Parts of policies. What is equal for several endpoints of a domain, such as the headers that the domain sets, is in
//! memory once: a message has its text once, and endpoints name it by its digest.
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use serde::de::DeserializeOwned;

use super::api_key::ApiKeys;
use super::basic::Basic;
use super::compiled::{Digests, Maintenance, Redirect, Sockets, Texts};
use super::compress::Compress;
use super::cors::Cors;
use super::headers::Headers;
use super::hmac::Hmac;
use super::ip::Networks;
use super::jwt::Jwt;
use super::rate_limit::Rules;
use super::validate::Validator;

/// Values that endpoints share while there are some that have them, by the domain and a digest.
pub struct InternTable<T> {
    values: HashMap<(Arc<str>, Box<str>), Weak<T>>,
    /// When there are so many, those that nobody has any more are dropped.
    sweep_at: usize,
}

impl<T> Default for InternTable<T> {
    fn default() -> Self {
        Self { values: HashMap::new(), sweep_at: 0 }
    }
}

impl<T> InternTable<T> {
    pub fn get(&self, domain: &Arc<str>, digest: &str) -> Option<Arc<T>> {
        self.values.get(&(domain.clone(), digest.into())).and_then(Weak::upgrade)
    }

    pub fn add(&mut self, domain: &Arc<str>, digest: Box<str>, value: &Arc<T>) {
        if self.values.len() >= self.sweep_at {
            self.values.retain(|_, value| value.strong_count() > 0);
            self.sweep_at = 2 * self.values.len() + 16;
        }
        self.values.insert((domain.clone(), digest), Arc::downgrade(value));
    }
}

/// The parts that endpoints have, by kind.
#[derive(Default)]
pub struct InternedParts {
    pub cors: InternTable<Cors>,
    pub ip: InternTable<Networks>,
    pub rate_limits: InternTable<Rules>,
    pub api_key: InternTable<ApiKeys>,
    pub basic: InternTable<Basic>,
    pub hmac: InternTable<Hmac>,
    pub jwt: InternTable<Jwt>,
    pub headers: InternTable<Headers>,
    pub redirect: InternTable<Redirect>,
    pub maintenance: InternTable<Maintenance>,
    pub compress: InternTable<Compress>,
    pub validate: InternTable<Validator>,
    pub websocket: InternTable<Sockets>,
}

/// Finds or makes the parts of one endpoint.
pub struct PartReader<'a> {
    pub texts: &'a Texts,
    pub domain: &'a Arc<str>,
    /// Digests of the parts that have not been read yet.
    pub digests: Digests,
    /// Why a part cannot be enforced.
    pub problem: Option<String>,
}

impl PartReader<'_> {
    /// `whole`: the policy itself, from a supervisor of the version before.
    pub fn json<C: DeserializeOwned, T>(
        &mut self,
        name: &str,
        known: &mut InternTable<T>,
        whole: Option<C>,
        make: impl FnOnce(C) -> Result<T, String>,
    ) -> Option<Arc<T>> {
        match whole {
            Some(whole) => self.noting_problem(make(whole).map(Arc::new)),
            None => self.text(name, known, |text| make(serde_json::from_str(text).map_err(|error| error.to_string())?)),
        }
    }

    /// A part that is made of its text.
    pub fn text<T>(
        &mut self,
        name: &str,
        known: &mut InternTable<T>,
        make: impl FnOnce(&str) -> Result<T, String>,
    ) -> Option<Arc<T>> {
        let digest = self.digests.remove(name)?;
        if let Some(part) = known.get(self.domain, &digest) {
            return Some(part);
        }
        let made = match self.texts.get(&digest) {
            Some(text) => make(text).map(Arc::new),
            None => Err(format!("the text of the policy {name} is missing")),
        };
        let part = self.noting_problem(made)?;
        known.add(self.domain, digest, &part);
        Some(part)
    }

    fn noting_problem<T>(&mut self, made: Result<Arc<T>, String>) -> Option<Arc<T>> {
        made.map_err(|problem| self.problem = Some(problem)).ok()
    }

    /// Why not all can be enforced: also what a later version names and nobody here has read.
    pub fn finish(self) -> Option<String> {
        let unknown = self.digests.into_keys().next().map(|name| format!("the policy {name} is not known here"));
        self.problem.or(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        known: &mut InternedParts,
        domain: &Arc<str>,
        texts: &[(&str, &str)],
    ) -> (Option<Arc<Basic>>, Option<String>) {
        let texts = texts.iter().map(|&(digest, text)| (digest.into(), text.into())).collect();
        let digests = Digests::from([("basic".into(), "d".into())]);
        let mut reader = PartReader { texts: &texts, domain, digests, problem: None };
        let part = reader.json("basic", &mut known.basic, None, |basic| Ok(Basic::new(basic)));
        (part, reader.finish())
    }

    #[test]
    fn endpoints_of_a_domain_share_a_part_and_those_of_another_do_not() {
        let (mut known, domain) = (InternedParts::default(), Arc::from("a.test"));
        let texts = [("d", r#"{ "realm": "r", "users": [] }"#)];
        let (first, problem) = read(&mut known, &domain, &texts);
        assert!(first.is_some() && problem.is_none());
        // Its text is not needed again.
        let (second, problem) = read(&mut known, &domain, &[]);
        assert!(problem.is_none() && Arc::ptr_eq(&first.clone().unwrap(), &second.unwrap()));
        let (other, _) = read(&mut known, &Arc::from("b.test"), &texts);
        assert!(!Arc::ptr_eq(&first.unwrap(), &other.unwrap()));
        // Nobody has it any more.
        let (_, problem) = read(&mut known, &domain, &[]);
        assert_eq!(problem.unwrap(), "the text of the policy basic is missing");
    }

    #[test]
    fn a_part_that_cannot_be_read_is_a_problem() {
        let (part, problem) = read(&mut InternedParts::default(), &Arc::from("a.test"), &[("d", r#"{ "realm": 5 }"#)]);
        assert!(part.is_none() && problem.is_some());
        let digests = Digests::from([("later".into(), "d".into())]);
        let reader = PartReader { texts: &Texts::new(), domain: &Arc::from("a.test"), digests, problem: None };
        assert_eq!(reader.finish().unwrap(), "the policy later is not known here");
    }

    #[test]
    fn what_nobody_has_is_dropped_in_time() {
        let (mut known, domain) = (InternTable::default(), Arc::from("a.test"));
        let kept = Arc::new(0);
        known.add(&domain, "kept".into(), &kept);
        for number in 1..1_000 {
            known.add(&domain, number.to_string().into(), &Arc::new(number));
        }
        assert!(known.values.len() < 30);
        assert_eq!(known.get(&domain, "kept"), Some(kept));
    }
}
