//! [`Pairs`]: a form, a query or cookies, with all values of each name.

use crate::error::HandlerError;
use crate::values::{one, Place, Values};
use serde::{Serialize, Serializer};
use std::str::FromStr;

/// Names and values in the order in which they were sent, those with the same name included: a form, a query or
/// cookies.
///
/// ```
/// use rust_edge_gateway_sdk_core::prelude::*;
/// fn handle(req: Request) -> Result<Response, HandlerError> {
///     let form = req.form()?;
///     let title: String = form.required("title")?;
///     let year: Option<u32> = form.optional("year")?;
///     Ok(Response::created(json!({"title": title, "year": year, "tags": form.get_all("tag")})))
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pairs {
    place: Place,
    pairs: Vec<(String, String)>,
}

impl Pairs {
    pub(crate) fn new(place: Place, pairs: Vec<(String, String)>) -> Self {
        Pairs { place, pairs }
    }

    /// The value with this name; of several the last, of cookies the first.
    pub fn get(&self, name: &str) -> Option<&str> {
        one(self.place, &self.get_all(name))
    }

    /// All values with this name.
    pub fn get_all(&self, name: &str) -> Vec<&str> {
        self.pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    /// The value with this name as another type, if there is one.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it does not parse.
    pub fn optional<T: FromStr>(&self, name: &str) -> Result<Option<T>, HandlerError> {
        self.values(name).optional()
    }

    /// The value with this name as another type.
    ///
    /// # Errors
    /// [`HandlerError::BadRequest`] if it is missing or does not parse.
    pub fn required<T: FromStr>(&self, name: &str) -> Result<T, HandlerError> {
        self.values(name).required()
    }

    /// All values with this name, to be read as a list or in another way.
    pub fn values<'a>(&'a self, name: &'a str) -> Values<'a> {
        Values::new(self.place, name, self.get_all(name))
    }

    /// The members of an object that is sent as `name[key]=value`: to be read with [`Values::optional_object`].
    pub fn deep_object<'a>(&'a self, name: &'a str) -> Values<'a> {
        let member = |(key, value)| Some([key_within(name, key)?, value]);
        Values::new(self.place, name, self.iter().filter_map(member).flatten().collect())
    }

    /// The items of a list that is sent as `name[]=value`, or with any other text in the brackets.
    pub fn deep_list<'a>(&'a self, name: &'a str) -> Values<'a> {
        let item = |(key, value)| key_within(name, key).map(|_| value);
        Values::new(self.place, name, self.iter().filter_map(item).collect())
    }

    /// The members of an object that are sent under their own names, to be read with [`Values::optional_object`].
    /// `name` is that of the object, for errors.
    pub fn members<'a>(&'a self, name: &'a str, keys: &[&str]) -> Values<'a> {
        self.object_of(name, |key| keys.contains(&key))
    }

    /// Does what [`Pairs::members`] does, for an object whose members are all that has other names than these.
    pub fn other_members<'a>(&'a self, name: &'a str, not_keys: &[&str]) -> Values<'a> {
        self.object_of(name, |key| !not_keys.contains(&key))
    }

    /// All names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.pairs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    fn object_of<'a>(&'a self, name: &'a str, is_member: impl Fn(&str) -> bool) -> Values<'a> {
        let members = self.iter().filter(|(key, _)| is_member(key));
        Values::new(self.place, name, members.flat_map(|(key, value)| [key, value]).collect())
    }
}

/// `key` of `name[key]`.
fn key_within<'a>(name: &str, field: &'a str) -> Option<&'a str> {
    field.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')
}

impl IntoIterator for Pairs {
    type Item = (String, String);
    type IntoIter = std::vec::IntoIter<(String, String)>;

    fn into_iter(self) -> Self::IntoIter {
        self.pairs.into_iter()
    }
}

/// Written as a list of pairs: `[["a","1"],["a","2"]]`.
impl Serialize for Pairs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.pairs.serialize(serializer)
    }
}
