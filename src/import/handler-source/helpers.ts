/** Functions that a generated handler brings along, for what the SDK does not do. */

interface HelperSource {
  /** The others that it calls. */
  readonly needs: readonly string[];
  readonly code: string;
}

/** By name, in the order in which they stand in a handler. */
const SOURCES = {
  cookie: {
    needs: [],
    code: `fn cookie(req: &Request, name: &str) -> Option<String> {
    let cookies = req.header("cookie")?.split(';');
    let mut pairs = cookies.filter_map(|cookie| cookie.trim().split_once('='));
    pairs.find_map(|(key, value)| (key == name).then(|| value.to_owned()))
}`,
  },
  require_cookie: {
    needs: ['cookie'],
    code: `fn require_cookie(req: &Request, name: &str) -> Result<String, HandlerError> {
    let missing = || HandlerError::BadRequest(format!("Missing required cookie: {name}"));
    cookie(req, name).ok_or_else(missing)
}`,
  },
  parse: {
    needs: [],
    code: `fn parse<T: FromStr>(name: &str, text: &str) -> Result<T, HandlerError> {
    let invalid = |_| HandlerError::BadRequest(format!("Invalid value for {name}: {text:?}"));
    text.parse().map_err(invalid)
}`,
  },
  optional: {
    needs: ['parse'],
    code: `/// A value that may be missing; one that is there has to be a \`T\`.
fn optional<T: FromStr>(name: &str, text: Option<&String>) -> Result<Option<T>, HandlerError> {
    text.map(|text| parse(name, text)).transpose()
}`,
  },
  list: {
    needs: ['parse'],
    code: `/// The values of \`1,2,3\`. Of a parameter that is repeated in a query, only the last value arrives.
fn list<T: FromStr>(name: &str, text: &str, separator: char) -> Result<Vec<T>, HandlerError> {
    text.split(separator).map(|item| parse(name, item.trim())).collect()
}`,
  },
  require: {
    needs: [],
    code: `fn require<T>(name: &str, value: Option<T>) -> Result<T, HandlerError> {
    value.ok_or_else(|| HandlerError::BadRequest(format!("Missing required value: {name}")))
}`,
  },
  deep_object: {
    needs: [],
    code: `/// The values of \`name[key]=value\` by key; None when there are none.
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
    needs: ['decode_percent'],
    code: `/// The fields of a body that is \`application/x-www-form-urlencoded\`.
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
    needs: [],
    code: `/// \`a+b%21\` is \`a b!\`. A percent sign that begins no escape stands for itself.
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
    needs: [],
    code: `/// The fields of a form that are text; browsers send JSON as a file.
fn text_fields(form: &MultipartData) -> Vec<(String, String)> {
    let json = form.files.iter().filter(|(_, file)| file.content_type.contains("json"));
    let json =
        json.map(|(name, file)| (name.clone(), String::from_utf8_lossy(&file.data).into_owned()));
    json.chain(form.fields.clone()).collect()
}`,
  },
  form_value: {
    needs: ['parse'],
    code: `/// The value of a field; of several, the last.
fn form_value<T: FromStr>(
    fields: &[(String, String)],
    name: &str,
) -> Result<Option<T>, HandlerError> {
    let field = fields.iter().rfind(|(key, _)| key == name);
    field.map(|(_, text)| parse(name, text)).transpose()
}`,
  },
  form_list: {
    needs: ['parse', 'list', 'form_value'],
    code: `/// The values of a field that holds several.
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
    needs: ['parse'],
    code: `/// The values of all fields of this name; None when there are none.
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
    needs: [],
    code: `/// What an answer shows of a file.
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

/** All there are. */
export const HELPERS = Object.keys(SOURCES) as readonly Helper[];

/** The functions that are called, and those that they call; in the order in which they stand in a handler. */
export function withNeeds(called: readonly Helper[]): readonly Helper[] {
  const needed = new Set<string>(called.flatMap((helper) => [helper, ...SOURCES[helper].needs]));
  return HELPERS.filter((helper) => needed.has(helper));
}

/** The source of a function. */
export function helperSource(helper: Helper): string {
  return SOURCES[helper].code;
}

/** Paths behind the names in a source that are not in the prelude, in the order of rustfmt. */
const PATHS = {
  'Serializer>': 'serde::Serializer',
  'HashMap<': 'std::collections::HashMap',
  FromStr: 'std::str::FromStr',
};

/** What types and functions use that is not in the prelude. */
export function usesOf(sources: readonly string[]): readonly string[] {
  const isUsed = (name: string) => sources.some((source) => source.includes(name));
  return Object.entries(PATHS).flatMap(([name, path]) => (isUsed(name) ? [path] : []));
}
