//! Which types of Rust are messages of programs in TypeScript.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::constants::constants;
use crate::problem::Problem;
use crate::sources::Sources;
use crate::types::{Names, Types};

/// A file of `src/contracts`.
pub struct Contract {
    pub file: &'static str,
    /// What its first comment says.
    pub about: &'static str,
    /// Files of Rust, and folders of these.
    pub sources: &'static [&'static str],
    /// The types that are sent; those that they have follow.
    pub roots: &'static [&'static str],
    /// Types that are no message themselves, and what they are in JSON.
    pub foreign: Names,
    /// Members that are any `Value` in Rust, and what is sent.
    pub values: Names,
    /// Constants, and enums with numbers, that both sides know; with their files.
    pub constants: &'static [(&'static str, &'static [&'static str])],
}

const OBJECT: &str = "Readonly<Record<string, unknown>>";

pub const CONTRACTS: &[Contract] = &[
    Contract {
        file: "front.ts",
        about: "The messages between the supervisor of a gateway and its front, one JSON text to a line.",
        sources: &["rust/front/src"],
        roots: &["ToFront", "FromFront"],
        foreign: &[],
        values: &[("fields", OBJECT)],
        constants: &[
            ("rust/front/src/internal.rs", &["TRIAL"]),
            ("rust/front/src/figures.rs", &["BOUNDS"]),
            ("rust/front/src/durations.rs", &["UNIT_NS", "PER_OCTAVE"]),
        ],
    },
    Contract {
        file: "front-validate.ts",
        about: "The policy `validate`, with its schemas, as the front gets it in a text of its own.",
        sources: &["rust/front/src/policies/validate"],
        roots: &["CompiledValidate"],
        foreign: &[("Number", "number"), ("Json", "unknown")],
        values: &[],
        constants: &[],
    },
    Contract {
        file: "starter.ts",
        about: "What an actor host and the starter of services tell each other, one JSON text to a line.",
        sources: &["rust/starter/src/messages.rs"],
        roots: &["Settings", "Request", "Report"],
        foreign: &[],
        values: &[],
        constants: &[],
    },
    Contract {
        file: "frames.ts",
        about: "What frames are made of, between handlers, the gateway and services.",
        sources: &[],
        roots: &[],
        foreign: &[],
        values: &[],
        constants: &[(
            "rust/sdk/core/src/wire/frame.rs",
            &["VERSION", "HEADER_BYTES", "MAX_HEAD_BYTES", "MAX_BODY_BYTES", "Kind"],
        )],
    },
    Contract {
        file: "launcher.ts",
        about: "What the launcher does before it becomes a program: an argument of it, as JSON.",
        sources: &["rust/launcher/src/plan.rs"],
        roots: &["Plan"],
        foreign: &[],
        values: &[],
        constants: &[],
    },
    Contract {
        file: "service-process.ts",
        about: "What an actor host and the process of a service tell each other.",
        sources: &["rust/service/src"],
        roots: &["ToService", "FromService", "State"],
        foreign: &[("Seconds", "readonly number[]"), ("True", "true"), ("False", "false")],
        values: &[("details", OBJECT), ("state", "State")],
        constants: &[],
    },
];

impl Contract {
    /// The text of the file. It is formatted by whoever writes it.
    pub fn text(&self, root: &Path) -> Result<String, Problem> {
        let sources = Sources::read(root, self.sources)?;
        let mut types = Types { foreign: self.foreign, values: self.values, sources, used: BTreeSet::new() };
        for name in self.roots {
            let at = types.sources.find(name, None)?;
            types.used.insert(at);
        }
        // A declaration names others, which are declared in their turn.
        let mut declared = BTreeMap::new();
        while let Some(at) = types.used.iter().copied().find(|at| !declared.contains_key(at)) {
            declared.insert(at, types.declaration(at)?);
        }
        let constants = self.constants.iter().map(|(file, names)| constants(&root.join(file), names));
        let constants = constants.collect::<Result<String, _>>()?;
        let files = self.constants.iter().map(|(file, _)| *file);
        let others = files.filter(|file| !self.sources.iter().any(|source| file.starts_with(source)));
        let sources = self.sources.iter().copied().chain(others).map(|source| format!("`{source}`"));
        Ok(format!(
            "/**\n * {}\n *\n * `npm run contracts` has written this file from {}: change it there.\n */\n\n{constants}{}",
            self.about,
            sources.collect::<Vec<_>>().join(" and "),
            declared.into_values().collect::<String>()
        ))
    }
}
