//! Schemas made ready to be evaluated. What a schema says of one type is together, and is not there where it says
//! nothing.
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use regex_automata::Input;
use regex_automata::meta::{Cache, Regex};

use super::compiled::{CompiledPattern, CompiledSchema, Index, Keywords, Types};
use super::formats::Format;
use super::json::Json;
use super::number::Number;

/// The largest automaton of one pattern, bytes: the management API bounds the weight of patterns.
const PATTERN_BYTES: usize = 8 * 1024 * 1024;
/// The size of a cache that is made while a pattern is matched; with less, that is slower.
const CACHE_BYTES: usize = 128 * 1024;
/// The bytes of such caches that a pattern keeps, for several threads, when that is more than the pattern itself takes.
const LEAST_CACHES_BYTES: usize = 16 * 1024;
/// The bytes of the rules of a schema, roughly, without what lists and names in them take.
const RULES_BYTES: usize = 512;
/// The bytes of an entry of a map by names, roughly, without the name.
const ENTRY_BYTES: usize = 64;

pub enum Schema {
    Is(bool),
    SchemaRules(Box<SchemaRules>),
}

pub struct SchemaRules {
    pub types: Option<Types>,
    pub values: Option<Vec<Json<'static>>>,
    pub constant: Option<Json<'static>>,
    pub number: Option<Box<NumberRules>>,
    pub text: Option<Box<TextRules>>,
    pub list: Option<Box<ListRules>>,
    pub object: Option<Box<ObjectRules>>,
    /// Schemas of the same value.
    pub applied: Option<Box<AppliedSchemas>>,
}

pub struct NumberRules {
    pub multiple_of: Option<Number>,
    pub maximum: Option<Number>,
    pub exclusive_maximum: Option<Number>,
    pub minimum: Option<Number>,
    pub exclusive_minimum: Option<Number>,
    pub format: Option<Format>,
}

pub struct TextRules {
    pub max_length: Option<u64>,
    pub min_length: Option<u64>,
    pub pattern: Option<Arc<Pattern>>,
    pub format: Option<Format>,
}

pub struct ListRules {
    pub max_items: Option<u64>,
    pub min_items: Option<u64>,
    pub unique_items: bool,
    pub contains: Option<Index>,
    pub max_contains: Option<u64>,
    pub min_contains: u64,
    pub prefix_items: Vec<Index>,
    pub items: Option<Index>,
    pub unevaluated_items: Option<Index>,
}

pub struct ObjectRules {
    pub max_properties: Option<u64>,
    pub min_properties: Option<u64>,
    pub required: Vec<Box<str>>,
    pub dependent_required: BTreeMap<Box<str>, Vec<Box<str>>>,
    pub properties: BTreeMap<Box<str>, Index>,
    pub pattern_properties: Vec<(Arc<Pattern>, Index)>,
    pub additional_properties: Option<Index>,
    pub property_names: Option<Index>,
    pub unevaluated_properties: Option<Index>,
}

pub struct AppliedSchemas {
    pub reference: Option<Index>,
    pub all_of: Vec<Index>,
    pub any_of: Vec<Index>,
    pub one_of: Vec<Index>,
    pub not: Option<Index>,
    pub condition: Option<Index>,
    pub then: Option<Index>,
    pub otherwise: Option<Index>,
    pub dependent_schemas: BTreeMap<Box<str>, Index>,
}

pub struct Pattern {
    regex: Regex,
    /// What searches need besides, for those to come: one at a time has it.
    caches: Mutex<Vec<Cache>>,
    pub shown: Box<str>,
    /// The steps for each byte of a text, at worst.
    pub cost: u64,
}

/// Patterns by their texts, that for the library and that for people.
type KnownPatterns = HashMap<(String, Box<str>), Weak<Pattern>>;

impl Pattern {
    /// One that is there already, if there is such a one: it takes time and memory once, however many schemas and
    /// policies have it, as those of an imported document do.
    fn shared(compiled: CompiledPattern) -> Result<Arc<Self>, String> {
        static KNOWN: LazyLock<Mutex<KnownPatterns>> = LazyLock::new(Mutex::default);
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (compiled.0.clone(), compiled.1.clone());
        if let Some(pattern) = known().get(&key).and_then(Weak::upgrade) {
            return Ok(pattern);
        }
        let pattern = Arc::new(Self::new(compiled)?);
        let mut known = known();
        if known.len() == known.capacity() {
            known.retain(|_, pattern| pattern.strong_count() > 0);
        }
        known.insert(key, Arc::downgrade(&pattern));
        Ok(pattern)
    }

    fn new(CompiledPattern(rust, shown, weight): CompiledPattern) -> Result<Self, String> {
        let config = Regex::config().nfa_size_limit(Some(PATTERN_BYTES)).hybrid_cache_capacity(CACHE_BYTES);
        let regex = Regex::builder().configure(config).build(&rust);
        let regex = regex.map_err(|error| format!("the pattern {shown} cannot be used: {error}"))?;
        Ok(Self { regex, caches: Mutex::default(), shown, cost: 1 + u64::from(weight) / 16 })
    }

    pub fn fits(&self, text: &str) -> bool {
        let kept = self.caches().pop();
        let mut cache = kept.unwrap_or_else(|| self.regex.create_cache());
        let found = self.regex.search_half_with(&mut cache, &Input::new(text).earliest(true));
        let mut caches = self.caches();
        if (caches.len() + 1) * cache.memory_usage() <= self.caches_room() {
            caches.push(cache);
        }
        found.is_some()
    }

    fn caches(&self) -> MutexGuard<'_, Vec<Cache>> {
        self.caches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of memory for what searches need: as many at a time as fit.
    fn caches_room(&self) -> usize {
        self.regex.memory_usage().max(LEAST_CACHES_BYTES)
    }

    /// What it takes of memory, at most.
    pub fn bytes(&self) -> usize {
        self.regex.memory_usage() + self.caches_room()
    }
}

impl Schema {
    /// # Errors
    /// Why it cannot be enforced.
    pub fn new(compiled: CompiledSchema) -> Result<Self, String> {
        match compiled {
            CompiledSchema::Is(value) => Ok(Self::Is(value)),
            CompiledSchema::Keywords(keywords) => {
                SchemaRules::new(*keywords).map(|rules| Self::SchemaRules(Box::new(rules)))
            }
        }
    }
}

impl Schema {
    /// What it takes of memory, without patterns.
    pub fn bytes(&self) -> usize {
        let Self::SchemaRules(rules) = self else { return size_of::<Self>() };
        let values = rules.values.iter().flatten().chain(&rules.constant).map(Json::bytes).sum::<usize>();
        let of_object = rules.object.as_deref().map_or(0, |object| {
            let dependent =
                object.dependent_required.iter().map(|(name, names)| ENTRY_BYTES + name.len() + names_bytes(names));
            let properties = object.properties.keys().map(|name| ENTRY_BYTES + name.len());
            names_bytes(&object.required) + dependent.sum::<usize>() + properties.sum::<usize>()
        });
        let of_applied = rules.applied.as_deref().map_or(0, |applied| {
            let lists = applied.all_of.len() + applied.any_of.len() + applied.one_of.len();
            let dependent = applied.dependent_schemas.keys().map(|name| ENTRY_BYTES + name.len());
            lists * size_of::<Index>() + dependent.sum::<usize>()
        });
        RULES_BYTES + values + of_object + of_applied
    }

    pub fn patterns(&self) -> impl Iterator<Item = &Arc<Pattern>> {
        let rules = if let Self::SchemaRules(rules) = self { Some(rules) } else { None };
        let of_text = rules.and_then(|rules| rules.text.as_ref()?.pattern.as_ref());
        let of_names = rules.and_then(|rules| rules.object.as_ref()).into_iter();
        of_text.into_iter().chain(of_names.flat_map(|object| object.pattern_properties.iter().map(|(name, _)| name)))
    }
}

fn names_bytes(names: &[Box<str>]) -> usize {
    names.iter().map(|name| size_of::<Box<str>>() + name.len()).sum()
}

impl SchemaRules {
    fn new(mut all: Keywords) -> Result<Self, String> {
        let format = all.format.as_deref().map(Format::named).transpose()?;
        Ok(Self {
            types: all.types,
            values: all.values.take(),
            constant: all.constant.take().map(|(value,)| value),
            number: number_rules(&all, format.filter(|format| format.is_of_numbers())),
            text: text_rules(&mut all, format.filter(|format| !format.is_of_numbers()))?,
            list: list_rules(&mut all),
            object: object_rules(&mut all)?,
            applied: applied(all),
        })
    }
}

fn number_rules(all: &Keywords, format: Option<Format>) -> Option<Box<NumberRules>> {
    let Keywords { multiple_of, maximum, exclusive_maximum, minimum, exclusive_minimum, .. } = *all;
    let is_any = [multiple_of, maximum, exclusive_maximum, minimum, exclusive_minimum].iter().any(Option::is_some);
    (is_any || format.is_some())
        .then(|| Box::new(NumberRules { multiple_of, maximum, exclusive_maximum, minimum, exclusive_minimum, format }))
}

fn text_rules(all: &mut Keywords, format: Option<Format>) -> Result<Option<Box<TextRules>>, String> {
    let Keywords { max_length, min_length, .. } = *all;
    let pattern = all.pattern.take().map(Pattern::shared).transpose()?;
    let is_any = max_length.is_some() || min_length.is_some() || pattern.is_some() || format.is_some();
    Ok(is_any.then(|| Box::new(TextRules { max_length, min_length, pattern, format })))
}

fn list_rules(all: &mut Keywords) -> Option<Box<ListRules>> {
    let Keywords { max_items, min_items, unique_items, contains, max_contains, items, unevaluated_items, .. } = *all;
    let is_any = max_items.is_some()
        || min_items.is_some()
        || unique_items
        || contains.is_some()
        || items.is_some()
        || unevaluated_items.is_some()
        || !all.prefix_items.is_empty();
    is_any.then(|| {
        let (min_contains, prefix_items) = (all.min_contains.unwrap_or(1), std::mem::take(&mut all.prefix_items));
        Box::new(ListRules {
            max_items,
            min_items,
            unique_items,
            contains,
            max_contains,
            min_contains,
            prefix_items,
            items,
            unevaluated_items,
        })
    })
}

fn object_rules(all: &mut Keywords) -> Result<Option<Box<ObjectRules>>, String> {
    let Keywords { max_properties, min_properties, additional_properties, property_names, .. } = *all;
    let pattern_properties = std::mem::take(&mut all.pattern_properties).into_iter();
    let pattern_properties = pattern_properties
        .map(|(pattern, schema)| Ok((Pattern::shared(pattern)?, schema)))
        .collect::<Result<Vec<_>, String>>()?;
    let is_any = max_properties.is_some()
        || min_properties.is_some()
        || additional_properties.is_some()
        || property_names.is_some()
        || all.unevaluated_properties.is_some()
        || !(all.required.is_empty() && all.dependent_required.is_empty() && all.properties.is_empty())
        || !pattern_properties.is_empty();
    Ok(is_any.then(|| {
        Box::new(ObjectRules {
            max_properties,
            min_properties,
            required: std::mem::take(&mut all.required),
            dependent_required: std::mem::take(&mut all.dependent_required),
            properties: std::mem::take(&mut all.properties),
            pattern_properties,
            additional_properties,
            property_names,
            unevaluated_properties: all.unevaluated_properties,
        })
    }))
}

fn applied(all: Keywords) -> Option<Box<AppliedSchemas>> {
    let Keywords { reference, all_of, any_of, one_of, not, condition, then, otherwise, dependent_schemas, .. } = all;
    let is_any = reference.is_some()
        || not.is_some()
        || condition.is_some()
        || !(all_of.is_empty() && any_of.is_empty() && one_of.is_empty() && dependent_schemas.is_empty());
    is_any.then(|| {
        Box::new(AppliedSchemas {
            reference,
            all_of,
            any_of,
            one_of,
            not,
            condition,
            then,
            otherwise,
            dependent_schemas,
        })
    })
}
