//! The declarations of types in TypeScript.
use quote::ToTokens;
use syn::{Field, Fields, FieldsNamed, GenericParam, Generics, ItemEnum, ItemStruct, Variant};

use crate::docs::comment;
use crate::problem::Problem;
use crate::serde_attributes::{Case, Serde};
use crate::sources::Kind;
use crate::types::{Scope, Types, optional};

impl Types {
    /// Declares the type at a place of the sources.
    pub fn declaration(&mut self, at: usize) -> Result<String, Problem> {
        let source = self.sources.get(at);
        let (name, file) = (source.name().to_string(), source.file);
        let kind = source.kind.clone();
        let parameters = parameters(source.generics());
        let scope = Scope { file, parameters: &parameters };
        let serde = Serde::of(source.attributes()).map_err(|problem| format!("{name}: {problem}"))?;
        let head = format!("{}export", comment(source.attributes()));
        let generics = if parameters.is_empty() { String::new() } else { format!("<{}>", parameters.join(", ")) };
        let is_message = serde.is_serialized || serde.is_deserialized || matches!(kind, Kind::Alias(_));
        let json = match (&serde.converted, &kind) {
            _ if !is_message => Err("its JSON is not derived".to_owned()),
            (Some(converted), _) => self.name(converted, &scope),
            (None, Kind::Alias(item)) => self.name(&item.ty, &scope),
            (None, Kind::Enum(item)) => self.union(item, &serde, &scope),
            (None, Kind::Struct(item)) => self.structure(item, &serde, &scope),
        };
        let json = json.map_err(|problem| format!("{name}: {problem}"))?;
        Ok(if matches!(kind, Kind::Struct(_)) && json.starts_with("{\n") && json.ends_with("\n}") {
            format!("{head} interface {name}{generics} {json}\n\n")
        } else {
            format!("{head} type {name}{generics} = {json};\n\n")
        })
    }

    fn structure(&mut self, item: &ItemStruct, serde: &Serde, scope: &Scope<'_>) -> Result<String, Problem> {
        match &item.fields {
            Fields::Named(fields) => self.object(None, fields, serde, serde.case, scope),
            Fields::Unnamed(fields) => {
                let members = fields.unnamed.iter().map(|field| self.element(field, scope));
                let members = members.collect::<Result<Vec<_>, _>>()?;
                // A struct around one value is that value.
                Ok(if let [only] = members.as_slice() {
                    only.clone()
                } else {
                    format!("readonly [{}]", members.join(", "))
                })
            }
            Fields::Unit => Ok("null".to_owned()),
        }
    }

    fn element(&mut self, field: &Field, scope: &Scope<'_>) -> Result<String, Problem> {
        let serde = Serde::of(&field.attrs)?;
        if serde.is_custom { Err(custom(&field.ty.to_token_stream())) } else { self.name(&field.ty, scope) }
    }

    fn union(&mut self, item: &ItemEnum, serde: &Serde, scope: &Scope<'_>) -> Result<String, Problem> {
        let mut members = String::new();
        for variant in &item.variants {
            let own = Serde::of(&variant.attrs)?;
            if !own.is_skipped {
                let member = self.variant(variant, &own, serde, scope)?;
                members.push_str(&format!("\n{}| {member}", comment(&variant.attrs)));
            }
        }
        Ok(members)
    }

    fn variant(&mut self, variant: &Variant, own: &Serde, serde: &Serde, scope: &Scope<'_>) -> Result<String, Problem> {
        let name = own.rename.clone().unwrap_or_else(|| serde.case.of_variant(&variant.ident.to_string()));
        let case = if own.case == Case::Same { serde.fields_case } else { own.case };
        // Fields of an enum have no default of their own.
        let direction = Serde { has_default: false, ..serde.clone() };
        let tag = serde.tag.as_ref().map(|tag| format!("readonly {tag}: '{name}';\n"));
        let content = match &variant.fields {
            Fields::Unit => None,
            Fields::Named(fields) => Some(self.object(tag.as_deref(), fields, &direction, case, scope)?),
            Fields::Unnamed(fields) => match fields.unnamed.iter().collect::<Vec<_>>().as_slice() {
                [only] => Some(self.element(only, scope)?),
                _ => return Err(format!("the variant {} has more than one value", variant.ident)),
            },
        };
        if serde.is_untagged {
            return content.ok_or_else(|| format!("the variant {name} has neither a tag nor a value"));
        }
        Ok(match (tag, content) {
            (None, None) => format!("'{name}'"),
            (None, Some(content)) => format!("{{ readonly {name}: {content} }}"),
            (Some(tag), None) => format!("{{ {tag} }}"),
            (Some(_), Some(content)) if matches!(variant.fields, Fields::Named(_)) => content,
            (Some(tag), Some(content)) => format!("({{ {tag} }} & {content})"),
        })
    }

    /// @param first members before those of the fields
    fn object(
        &mut self,
        first: Option<&str>,
        fields: &FieldsNamed,
        serde: &Serde,
        case: Case,
        scope: &Scope<'_>,
    ) -> Result<String, Problem> {
        let mut members = first.unwrap_or_default().to_owned();
        let mut flat = Vec::new();
        for field in &fields.named {
            let own = Serde::of(&field.attrs)?;
            if own.is_flat {
                flat.push(self.name(&field.ty, scope)?);
            } else if !own.is_skipped {
                members.push_str(&self.member(field, &own, serde, case, scope)?);
            }
        }
        let all = format!("{{\n{members}\n}}");
        Ok([vec![all], flat].concat().join(" & "))
    }

    fn member(
        &mut self,
        field: &Field,
        own: &Serde,
        serde: &Serde,
        case: Case,
        scope: &Scope<'_>,
    ) -> Result<String, Problem> {
        let name = field.ident.as_ref().ok_or("a field without a name")?.to_string();
        let name = own.rename.clone().unwrap_or_else(|| case.of_field(name.trim_start_matches("r#")));
        if own.is_custom {
            return Err(custom(&name));
        }
        if let Some((_, json)) = self.values.iter().find(|(value, _)| *value == name) {
            return Ok(format!("{}readonly {name}: {json};\n", comment(&field.attrs)));
        }
        let inner = optional(&field.ty);
        let has_default = own.has_default || serde.has_default;
        let (mark, json) = match inner {
            Some(inner) if own.is_skipped_if && !serde.is_deserialized => ("?", self.name(inner, scope)?),
            // Rust takes null, too; but two ways to say nothing would be one too many.
            Some(inner) if serde.is_deserialized && !own.is_nullable => ("?", self.name(inner, scope)?),
            _ if serde.is_deserialized && has_default => ("?", self.name(&field.ty, scope)?),
            _ if own.is_skipped_if => return Err(format!("{name} is left out, but is no Option")),
            _ => ("", self.name(&field.ty, scope)?),
        };
        Ok(format!("{}readonly {name}{mark}: {json};\n", comment(&field.attrs)))
    }
}

fn parameters(generics: &Generics) -> Vec<String> {
    let types = generics.params.iter().filter_map(|parameter| match parameter {
        GenericParam::Type(parameter) => Some(parameter.ident.to_string()),
        _ => None,
    });
    types.collect()
}

fn custom(what: &impl std::fmt::Display) -> Problem {
    format!("a function converts {what}: give it a type that has this JSON")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::sources::Sources;
    use crate::types::Types;

    /// The declaration of the first type, on one line.
    fn declared(source: &str) -> Result<String, String> {
        let sources = Sources::of(vec![syn::parse_str(source).unwrap()]);
        let mut types = Types { foreign: &[("Ratio", "number")], values: &[], sources, used: BTreeSet::new() };
        let text = types.declaration(0)?;
        Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_rust_reads_may_be_left_out_where_it_says_so() {
        let source = r#"
            /// A plan, see [`Other`].
            #[derive(Deserialize)]
            #[serde(rename_all = "camelCase", deny_unknown_fields)]
            struct Plan<T> {
                /// How often.
                how_often: Option<u32>,
                #[serde(deserialize_with = "Option::deserialize")]
                nice: Option<i32>,
                #[serde(default)]
                names: Vec<Box<str>>,
                #[serde(rename = "type")]
                kind: Ratio,
                content: T,
            }"#;
        let expected = "/** A plan, see `Other`. */ export interface Plan<T> { /** How often. */ readonly howOften?: number; \
            readonly nice: number | null; readonly names?: readonly string[]; readonly type: number; \
            readonly content: T; }";
        assert_eq!(declared(source).unwrap(), expected);
    }

    #[test]
    fn what_rust_writes_is_null_unless_it_is_skipped() {
        let source = r#"
            #[derive(Serialize)]
            struct Answer {
                #[serde(skip_serializing_if = "Option::is_none")]
                error: Option<String>,
                counts: [Option<u64>; 2],
                left: Option<(u8, bool)>,
            }"#;
        let expected = "export interface Answer { readonly error?: string; readonly counts: readonly (number | null)[]; \
            readonly left: readonly [number, boolean] | null; }";
        assert_eq!(declared(source).unwrap(), expected);
    }

    #[test]
    fn variants_are_told_apart_as_serde_does_it() {
        let tagged = r#"
            #[derive(Deserialize)]
            #[serde(tag = "kind", rename_all = "camelCase")]
            enum Message { Stop, #[serde(rename_all = "camelCase")] HandOver { to_whom: u8 }, Plan(Box<Plan>) }
            #[derive(Deserialize)]
            struct Plan { x: u8 }"#;
        let expected = "export type Message = | { readonly kind: 'stop'; } \
            | { readonly kind: 'handOver'; readonly toWhom: number; } | ({ readonly kind: 'plan'; } & Plan);";
        assert_eq!(declared(tagged).unwrap(), expected);
        let outside = r#"#[derive(Deserialize)] #[serde(rename_all = "lowercase")] enum By { Header(String), Nobody }"#;
        assert_eq!(declared(outside).unwrap(), "export type By = | { readonly header: string } | 'nobody';");
        let untagged = "#[derive(Deserialize)] #[serde(untagged)] enum Schema { Is(bool), Named { name: String } }";
        assert_eq!(declared(untagged).unwrap(), "export type Schema = | boolean | { readonly name: string; };");
    }

    #[test]
    fn refuses_what_it_cannot_say() {
        let of = |member: &str| declared(&format!("#[derive(Serialize)] struct A {{ {member} }}")).unwrap_err();
        assert!(of(r#"#[serde(alias = "b")] a: u8"#).contains("does not know this attribute"));
        assert!(of(r#"#[serde(serialize_with = "seconds")] a: u8"#).contains("a function converts a"));
        assert!(of("a: Unknown").contains("the type Unknown is none of its sources"));
        assert!(declared("struct A { a: u8 }").unwrap_err().contains("not derived"));
    }
}
