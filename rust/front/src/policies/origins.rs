//! Lists of origins of pages, as policies have them: exact, `*`, or `https://*.example.com`.
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(from = "Vec<String>")]
pub struct Origins {
    pub allows_any: bool,
    origins: Box<[Origin]>,
}

impl From<Vec<String>> for Origins {
    fn from(origins: Vec<String>) -> Self {
        let allows_any = origins.iter().any(|origin| origin == "*");
        Self { allows_any, origins: origins.into_iter().map(Origin::new).collect() }
    }
}

impl Origins {
    /// Whether this one is named; `*` is asked for apart.
    pub fn allow(&self, origin: &str) -> bool {
        self.origins.iter().any(|allowed| allowed.is(origin))
    }
}

#[derive(Debug)]
enum Origin {
    Exact(String),
    /// `https://*.example.com:8443`: what stands before and after the names of the subdomain.
    Subdomains {
        scheme: String,
        rest: String,
    },
}

impl Origin {
    fn new(text: String) -> Self {
        match text.split_once("*.") {
            Some((scheme, rest)) => Self::Subdomains { scheme: scheme.to_owned(), rest: format!(".{rest}") },
            None => Self::Exact(text),
        }
    }

    fn is(&self, origin: &str) -> bool {
        match self {
            Self::Exact(text) => text == origin,
            Self::Subdomains { scheme, rest } => {
                let names = origin.strip_prefix(&**scheme).and_then(|host| host.strip_suffix(&**rest));
                names.is_some_and(|names| {
                    names.split('.').all(|name| !name.is_empty())
                        && names.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
                })
            }
        }
    }
}
