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
fn list<T: FromStr>(name: &str, text: &str) -> Result<Vec<T>, HandlerError> {
    text.split(',').map(|item| parse(name, item)).collect()
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
