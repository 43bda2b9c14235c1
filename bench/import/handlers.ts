/**
 * Fifty handlers like those of a team: ten kinds of work on five resources, each with different code, types and fields.
 */

/** A handler of the bundle, and its operation. */
export interface BundleHandler {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly code: string;
}

interface Resource {
  readonly one: string;
  readonly many: string;
  readonly type: string;
  /** Fields and their Rust types. */
  readonly fields: readonly (readonly [name: string, type: string])[];
  /** A numeric field, and its maximum. */
  readonly amount: string;
  readonly most: number;
}

const RESOURCES: readonly Resource[] = [
  {
    one: 'pet',
    many: 'pets',
    type: 'Pet',
    fields: [
      ['name', 'String'],
      ['kind', 'String'],
      ['age', 'u32'],
      ['tags', 'Vec<String>'],
    ],
    amount: 'age',
    most: 200,
  },
  {
    one: 'order',
    many: 'orders',
    type: 'Order',
    fields: [
      ['customer', 'String'],
      ['pieces', 'u32'],
      ['price', 'f64'],
      ['express', 'bool'],
      ['note', 'Option<String>'],
    ],
    amount: 'pieces',
    most: 1_000,
  },
  {
    one: 'book',
    many: 'books',
    type: 'Book',
    fields: [
      ['title', 'String'],
      ['authors', 'Vec<String>'],
      ['year', 'i64'],
    ],
    amount: 'year',
    most: 2_100,
  },
  {
    one: 'trip',
    many: 'trips',
    type: 'Trip',
    fields: [
      ['from', 'String'],
      ['to', 'String'],
      ['seats', 'u64'],
      ['distance_km', 'f64'],
      ['stops', 'Vec<String>'],
      ['luggage', 'Option<u32>'],
    ],
    amount: 'seats',
    most: 600,
  },
  {
    one: 'invoice',
    many: 'invoices',
    type: 'Invoice',
    fields: [
      ['number', 'String'],
      ['cents', 'u64'],
      ['paid', 'bool'],
    ],
    amount: 'cents',
    most: 100_000_000,
  },
];

/** Handlers with code that no other call returns, if `variant` is new. */
export function bundleHandlers(variant: string): BundleHandler[] {
  return RESOURCES.flatMap((resource) =>
    KINDS.map(({ name, method, path, code }) => ({
      operationId: `${name}_${resource.one}`,
      method,
      path: path(resource.many),
      code: `// ${name} ${resource.one}, ${variant}\n\nuse rust_edge_gateway_sdk::prelude::*;\n\nconst VARIANT: &str = "${variant}";\n\n${code(resource)}\n`,
    })),
  );
}

interface Kind {
  readonly name: string;
  readonly method: string;
  readonly path: (many: string) => string;
  readonly code: (resource: Resource) => string;
}

const struct = ({ type, fields }: Resource, name = type) =>
  `#[derive(Deserialize, Serialize)]\nstruct ${name} {\n${fields.map(([field, of]) => `    ${field}: ${of},`).join('\n')}\n}`;

const CHECKED = ({
  one,
  type,
  amount,
  most,
}: Resource) => `fn checked(${one}: ${type}) -> Result<${type}, HandlerError> {
    if ${one}.${amount} as f64 > ${most}.0 {
        return Err(HandlerError::ValidationError(format!("${amount} is above ${most}: {}", ${one}.${amount})));
    }
    Ok(${one})
}`;

const KINDS: readonly Kind[] = [
  {
    name: 'list',
    method: 'GET',
    path: (many) => `/${many}`,
    code: ({ many, fields }) => `fn handle(req: Request) -> Response {
    let page: u32 = req.query_param_as("page").unwrap_or(1).max(1);
    let size: u32 = req.query_param_as("size").unwrap_or(20).clamp(1, 100);
    let sort = req.query_param("sort").map_or("${fields[0]?.[0]}", |sort| sort.as_str());
    if ![${fields.map(([name]) => `"${name}"`).join(', ')}].contains(&sort) {
        return Response::bad_request(format!("cannot sort by {sort}"));
    }
    let ids: Vec<u32> = ((page - 1) * size..page * size).collect();
    Response::ok(json!({"${many}": ids, "page": page, "sort": sort, "variant": VARIANT}))
}

handler_loop!(handle);`,
  },
  {
    name: 'create',
    method: 'POST',
    path: (many) => `/${many}`,
    code: (resource) => `${struct(resource)}

${CHECKED(resource)}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let ${resource.one} = checked(req.json()?)?;
    let location = format!("/${resource.many}/{}", req.request_id);
    Ok(Response::created(json!({"${resource.one}": ${resource.one}, "variant": VARIANT})).with_header("Location", location))
}

handler_loop_result!(handle);`,
  },
  {
    name: 'get',
    method: 'GET',
    path: (many) => `/${many}/{id}`,
    code: ({ one }) => `fn handle(req: Request) -> Result<Response, HandlerError> {
    let id: u64 = req.require_path_param("id")?;
    if id == 0 {
        return Err(HandlerError::NotFoundMessage(format!("no ${one} {id}")));
    }
    Ok(Response::ok(json!({"${one}": id, "variant": VARIANT})).with_cache(60))
}

handler_loop_result!(handle);`,
  },
  {
    name: 'replace',
    method: 'PUT',
    path: (many) => `/${many}/{id}`,
    code: (resource) => `${struct(resource)}

#[derive(Serialize)]
struct Replaced {
    id: u64,
    ${resource.one}: ${resource.type},
    variant: &'static str,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let id = req.require_path_param("id")?;
    let ${resource.one}: ${resource.type} = req.json()?;
    Ok(Response::ok(Replaced { id, ${resource.one}, variant: VARIANT }))
}

handler_loop_result!(handle);`,
  },
  {
    name: 'change',
    method: 'PATCH',
    path: (many) => `/${many}/{id}`,
    code: (resource) => `#[derive(Default, Deserialize)]
#[serde(default)]
struct Change {
${resource.fields.map(([field, of]) => `    ${field}: ${of.startsWith('Option') ? of : `Option<${of}>`},`).join('\n')}
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let id: String = req.require_path_param("id")?;
    let change: Change = req.json()?;
    let mut changed = Vec::new();
${resource.fields.map(([field]) => `    if change.${field}.is_some() {\n        changed.push("${field}");\n    }`).join('\n')}
    if changed.is_empty() {
        return Err(HandlerError::BadRequest("nothing to change".into()));
    }
    Ok(Response::ok(json!({"id": id, "changed": changed, "variant": VARIANT})))
}

handler_loop_result!(handle);`,
  },
  {
    name: 'remove',
    method: 'DELETE',
    path: (many) => `/${many}/{id}`,
    code: ({ one }) => `fn handle(req: Request) -> Response {
    match req.path_param_as::<u64>("id") {
        None => Response::bad_request("the id of a ${one} is a number"),
        Some(0) => Response::not_found_msg("no ${one} 0"),
        Some(_) if req.header("if-match").is_some_and(|version| version != VARIANT) => Response::conflict("changed meanwhile"),
        Some(_) => Response::no_content(),
    }
}

handler_loop!(handle);`,
  },
  {
    name: 'search',
    method: 'GET',
    path: (many) => `/search/${many}`,
    code: ({ many, fields }) => `use std::collections::HashMap;

fn handle(req: Request) -> Result<Response, HandlerError> {
    let text: String = req.require_query_param("q")?;
    let mut words: HashMap<String, u32> = HashMap::new();
    for word in text.split_whitespace() {
        *words.entry(word.to_lowercase()).or_default() += 1;
    }
    let mut ranked: Vec<(String, u32)> = words.into_iter().collect();
    ranked.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(&right.0)));
    Ok(Response::ok(json!({"in": "${many}", "field": "${fields[0]?.[0]}", "words": ranked, "variant": VARIANT})))
}

handler_loop_result!(handle);`,
  },
  {
    name: 'add_many',
    method: 'POST',
    path: (many) => `/batches/${many}`,
    code: (resource) => `${struct(resource)}

${CHECKED(resource)}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let all: Vec<${resource.type}> = req.json()?;
    let count = all.len();
    let good: Vec<${resource.type}> = all.into_iter().filter_map(|${resource.one}| checked(${resource.one}).ok()).collect();
    let refused = count - good.len();
    Ok(Response::accepted(json!({"${resource.many}": good, "refused": refused, "variant": VARIANT})))
}

handler_loop_result!(handle);`,
  },
  {
    name: 'summarize',
    method: 'POST',
    path: (many) => `/summaries/${many}`,
    code: (resource) => `${struct(resource)}

#[derive(Serialize)]
struct Summary {
    count: usize,
    total: f64,
    average: Option<f64>,
    highest: Option<${resource.type}>,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let mut all: Vec<${resource.type}> = req.json()?;
    all.sort_by(|left, right| left.${resource.amount}.cmp(&right.${resource.amount}));
    let (count, total) = (all.len(), all.iter().map(|${resource.one}| ${resource.one}.${resource.amount} as f64).sum::<f64>());
    let average = (count > 0).then(|| total / count as f64);
    let summary = Summary { count, total, average, highest: all.pop() };
    Ok(Response::ok(summary).with_header("X-Variant", VARIANT))
}

handler_loop_result!(handle);`,
  },
  {
    name: 'export',
    method: 'POST',
    path: (many) => `/exports/${many}`,
    code: (resource) => `fn cell(value: &JsonValue) -> String {
    match value {
        JsonValue::String(text) => format!("\\"{}\\"", text.replace('"', "\\"\\"")),
        JsonValue::Null => String::new(),
        other => other.to_string(),
    }
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    const FIELDS: [&str; ${resource.fields.length}] = [${resource.fields.map(([name]) => `"${name}"`).join(', ')}];
    let rows: Vec<JsonValue> = req.json()?;
    let mut text = FIELDS.join(",");
    for row in &rows {
        let cells: Vec<String> = FIELDS.iter().map(|field| cell(&row[field])).collect();
        text.push('\\n');
        text.push_str(&cells.join(","));
    }
    Ok(Response::text(200, text).with_header("X-Variant", VARIANT))
}

handler_loop_result!(handle);`,
  },
];
