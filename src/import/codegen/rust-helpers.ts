/** Rust helper functions that are copied into generated handlers, for what the SDK does not have. */

interface HelperSource {
  /** The helpers that it calls, also indirectly. */
  readonly calls: readonly string[];
  readonly code: string;
}

/** By name, in the order of their definitions in a handler. */
const SOURCES = {
  cookie: {
    calls: [],
    code: `fn cookie(req: &Request, name: &str) -> Option<String> {
    let cookies = req.header("cookie")?.split(';');
    let mut pairs = cookies.filter_map(|cookie| cookie.trim().split_once('='));
    pairs.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
}`,
  },
  require_cookie: {
    calls: ['cookie'],
    code: `fn require_cookie(req: &Request, name: &str) -> Result<String, HandlerError> {
    let missing = || HandlerError::BadRequest(format!("Missing required cookie: {name}"));
    cookie(req, name).ok_or_else(missing)
}`,
  },
  parse: {
    calls: [],
    code: `fn parse<T: FromStr>(name: &str, text: &str) -> Result<T, HandlerError> {
    let invalid = |_| HandlerError::BadRequest(format!("Invalid value for {name}: {text:?}"));
    text.parse().map_err(invalid)
}`,
  },
  optional: {
    calls: ['parse'],
    code: `/// Parses a value if it is present.
fn optional<T: FromStr>(name: &str, text: Option<&String>) -> Result<Option<T>, HandlerError> {
    text.map(|text| parse(name, text)).transpose()
}`,
  },
  list: {
    calls: ['parse'],
    code: `/// Parses a list such as \`1,2,3\`. If a query repeats the parameter, this is its last value.
fn list<T: FromStr>(name: &str, text: &str, separator: char) -> Result<Vec<T>, HandlerError> {
    text.split(separator).map(|item| parse(name, item.trim())).collect()
}`,
  },
  require: {
    calls: [],
    code: `fn require<T>(name: &str, value: Option<T>) -> Result<T, HandlerError> {
    value.ok_or_else(|| HandlerError::BadRequest(format!("Missing required value: {name}")))
}`,
  },
  deep_object: {
    calls: [],
    code: `/// The members of an object sent as \`name[key]=value\`; None if there are none.
fn deep_object<'a>(
    name: &str,
    fields: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> Option<HashMap<String, String>> {
    let key = |field: &'a str| field.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']');
    let member =
        |(field, value): (&'a String, &'a String)| Some((key(field)?.to_owned(), value.clone()));
    let members: HashMap<_, _> = fields.into_iter().filter_map(member).collect();
    (!members.is_empty()).then_some(members)
}`,
  },
  form_fields: {
    calls: ['decode_percent'],
    code: `/// Parses a body of type \`application/x-www-form-urlencoded\`.
fn form_fields(req: &Request) -> Result<Vec<(String, String)>, HandlerError> {
    const MEDIA_TYPE: &str = "application/x-www-form-urlencoded";
    let sent = req.content_type().and_then(|text| text.split(';').next()).unwrap_or("");
    if !sent.trim().eq_ignore_ascii_case(MEDIA_TYPE) {
        let expected = format!("Expected a body with Content-Type: {MEDIA_TYPE}");
        return Err(HandlerError::BadRequest(expected));
    }
    let bytes = req.body_bytes();
    let body = String::from_utf8_lossy(&bytes);
    let pairs = body.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    Ok(pairs.map(|(name, value)| (decode_percent(name), decode_percent(value))).collect())
}`,
  },
  decode_percent: {
    calls: [],
    code: `/// Decodes \`a+b%21\` to \`a b!\`. Invalid escapes are kept as they are.
fn decode_percent(text: &str) -> String {
    let text = text.replace('+', " ");
    let mut pieces = text.split('%');
    let mut bytes = pieces.next().unwrap_or("").as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                bytes.extend(&piece.as_bytes()[2..]);
            }
            None => {
                bytes.push(b'%');
                bytes.extend(piece.as_bytes());
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}`,
  },
  text_fields: {
    calls: [],
    code: `/// The text fields of a form, including JSON, which browsers send as a file.
fn text_fields(form: &MultipartData) -> Vec<(String, String)> {
    let json = form.files.iter().filter(|(_, file)| file.content_type.contains("json"));
    let json =
        json.map(|(name, file)| (name.clone(), String::from_utf8_lossy(&file.data).into_owned()));
    json.chain(form.fields.clone()).collect()
}`,
  },
  form_value: {
    calls: ['parse'],
    code: `/// Parses the value of a field; of a repeated field, the last one.
fn form_value<T: FromStr>(
    fields: &[(String, String)],
    name: &str,
) -> Result<Option<T>, HandlerError> {
    let field = fields.iter().rfind(|(key, _)| key == name);
    field.map(|(_, text)| parse(name, text)).transpose()
}`,
  },
  form_list: {
    calls: ['parse', 'list', 'form_value'],
    code: `/// Parses the list in one field.
fn form_list<T: FromStr>(
    fields: &[(String, String)],
    name: &str,
    separator: char,
) -> Result<Option<Vec<T>>, HandlerError> {
    let text: Option<String> = form_value(fields, name)?;
    text.map(|text| list(name, &text, separator)).transpose()
}`,
  },
  form_values: {
    calls: ['parse'],
    code: `/// Parses the values of all fields with this name; None if there are none.
fn form_values<T: FromStr>(
    fields: &[(String, String)],
    name: &str,
) -> Result<Option<Vec<T>>, HandlerError> {
    let found = fields.iter().filter(|(key, _)| key == name);
    let values: Vec<T> = found.map(|(_, text)| parse(name, text)).collect::<Result<_, _>>()?;
    Ok((!values.is_empty()).then_some(values))
}`,
  },
  file_info: {
    calls: [],
    code: `/// Serializes the metadata of a file.
fn file_info<'a, S: Serializer>(
    file: impl Into<Option<&'a MultipartFile>>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let info = |file: &MultipartFile| {
        json!({
            "filename": file.filename,
            "content_type": file.content_type,
            "bytes": file.data.len(),
        })
    };
    file.into().map(info).serialize(serializer)
}`,
  },
} satisfies Record<string, HelperSource>;

export type Helper = keyof typeof SOURCES;

export const HELPERS = Object.keys(SOURCES) as readonly Helper[];

/** These helpers and those that they call, in the order of their definitions. */
export function withDependencies(called: readonly Helper[]): readonly Helper[] {
  const needed = new Set<string>(called.flatMap((helper) => [helper, ...SOURCES[helper].calls]));
  return HELPERS.filter((helper) => needed.has(helper));
}

export function helperSource(helper: Helper): string {
  return SOURCES[helper].code;
}

/** Import paths by the text that needs them, for names that are not in the prelude; in the order of rustfmt. */
const IMPORTS = {
  'Serializer>': 'serde::Serializer',
  'HashMap<': 'std::collections::HashMap',
  FromStr: 'std::str::FromStr',
};

/** Import paths for the names in these sources that are not in the prelude. */
export function importsOf(sources: readonly string[]): readonly string[] {
  const isUsed = (name: string) => sources.some((source) => source.includes(name));
  return Object.entries(IMPORTS).flatMap(([name, path]) => (isUsed(name) ? [path] : []));
}
