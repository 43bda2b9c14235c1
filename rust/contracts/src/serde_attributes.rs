//! What attributes of serde say about the JSON of a type. One that is not known here is an error: the types of
//! TypeScript would be wrong without a word.
use quote::ToTokens;
use syn::meta::ParseNestedMeta;
use syn::parse::Parse;
use syn::{Attribute, LitStr, Token, Type};

use crate::problem::Problem;

/// How names in Rust become names in JSON.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Case {
    #[default]
    Same,
    Lower,
    Camel,
    Snake,
}

/// The attributes of a type, of a variant, or of a field.
#[derive(Clone, Default)]
pub struct Serde {
    pub is_serialized: bool,
    pub is_deserialized: bool,
    pub case: Case,
    pub fields_case: Case,
    pub rename: Option<String>,
    pub tag: Option<String>,
    pub is_untagged: bool,
    /// What is missing has a default.
    pub has_default: bool,
    /// It is left out when there is nothing to say.
    pub is_skipped_if: bool,
    /// It is not a part of the JSON.
    pub is_skipped: bool,
    pub is_flat: bool,
    /// The JSON is that of another type, which is converted.
    pub converted: Option<Type>,
    /// An `Option` for which null is sent: unless it has a default, it may not be left out.
    pub is_nullable: bool,
    /// A function writes or reads it.
    pub is_custom: bool,
}

impl Serde {
    pub fn of(attributes: &[Attribute]) -> Result<Self, Problem> {
        let mut serde = Self::default();
        for attribute in attributes {
            if attribute.path().is_ident("derive") {
                serde.read_derive(attribute)?;
            } else if attribute.path().is_ident("serde") {
                attribute
                    .parse_nested_meta(|meta| serde.read(&meta))
                    .map_err(|error| format!("{}: {error}", attribute.to_token_stream()))?;
            }
        }
        Ok(serde)
    }

    fn read_derive(&mut self, attribute: &Attribute) -> Result<(), Problem> {
        let read = attribute.parse_nested_meta(|meta| {
            let name = meta.path.segments.last().map(|segment| segment.ident.to_string());
            self.is_serialized |= name.as_deref() == Some("Serialize");
            self.is_deserialized |= name.as_deref() == Some("Deserialize");
            Ok(())
        });
        read.map_err(|error| error.to_string())
    }

    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = meta.path.require_ident()?.to_string();
        match name.as_str() {
            "rename_all" => self.case = case(&value::<LitStr>(meta)?)?,
            "rename_all_fields" => self.fields_case = case(&value::<LitStr>(meta)?)?,
            "rename" => self.rename = Some(value::<LitStr>(meta)?.value()),
            "tag" => self.tag = Some(value::<LitStr>(meta)?.value()),
            "try_from" | "from" | "into" => self.converted = Some(value::<LitStr>(meta)?.parse()?),
            "default" => {
                self.has_default = true;
                if meta.input.peek(Token![=]) {
                    value::<LitStr>(meta)?;
                }
            }
            "skip_serializing_if" => {
                value::<LitStr>(meta)?;
                self.is_skipped_if = true;
            }
            "with" | "serialize_with" | "deserialize_with" => {
                self.is_nullable = value::<LitStr>(meta)?.value() == "Option::deserialize";
                self.is_custom = !self.is_nullable;
            }
            "skip" => self.is_skipped = true,
            "flatten" => self.is_flat = true,
            "untagged" => self.is_untagged = true,
            // Says what Rust refuses, or borrows: the JSON is the same.
            "deny_unknown_fields" | "borrow" => {}
            _ => return Err(meta.error("rust/contracts does not know this attribute of serde yet")),
        }
        Ok(())
    }
}

fn value<T: Parse>(meta: &ParseNestedMeta<'_>) -> syn::Result<T> {
    meta.value()?.parse()
}

fn case(text: &LitStr) -> syn::Result<Case> {
    Ok(match text.value().as_str() {
        "lowercase" => Case::Lower,
        "camelCase" => Case::Camel,
        "snake_case" => Case::Snake,
        _ => return Err(syn::Error::new(text.span(), "rust/contracts does not know this case yet")),
    })
}

impl Case {
    pub fn of_field(self, name: &str) -> String {
        match self {
            Self::Same | Self::Lower | Self::Snake => name.to_owned(),
            Self::Camel => {
                let (first, rest) = name.split_once('_').unwrap_or((name, ""));
                let rest = rest.split('_').map(capitalized);
                format!("{first}{}", rest.collect::<String>())
            }
        }
    }

    pub fn of_variant(self, name: &str) -> String {
        match self {
            Self::Same => name.to_owned(),
            Self::Lower => name.to_lowercase(),
            Self::Camel => with_first(name, char::to_ascii_lowercase),
            Self::Snake => {
                let parts = name.char_indices().map(|(at, letter)| {
                    let gap = if at > 0 && letter.is_ascii_uppercase() { "_" } else { "" };
                    format!("{gap}{}", letter.to_ascii_lowercase())
                });
                parts.collect()
            }
        }
    }
}

fn capitalized(word: &str) -> String {
    with_first(word, char::to_ascii_uppercase)
}

fn with_first(word: &str, change: fn(&char) -> char) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", change(&first), letters.as_str()))
}
