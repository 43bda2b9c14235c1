/**
 * The source of generated handlers: its text, and that it compiles without warnings; for all combinations of types and
 * styles, and for many documents, in test/torture.
 */
import { expect } from 'chai';
import { generateHandler } from '../../../src/import/codegen/generate-handler.js';
import type { Operation, Parameter } from '../../../src/import/openapi/document.js';
import { field, formBody, jsonBody, MULTIPART, member, onlyTexts } from './bodies.js';
import { type CheckHandlers, openCompiler } from './check-handlers.js';
import { HOSTILE_TEXTS, operation, parameter } from './operations.js';

const UPDATE_PET = operation({
  operationId: 'updatePet',
  method: 'PUT',
  path: '/pets/{petId}',
  description: 'Changes a pet.\n\nIts kind stays.',
  parameters: [
    parameter('petId', { in: 'path', required: true, type: 'integer' }),
    parameter('dryRun', { type: 'boolean' }),
    parameter('reason'),
    parameter('order', { allowed: onlyTexts('name', 'age') }),
    parameter('fields', { type: 'array', itemType: 'string', explode: false, required: true }),
    parameter('filter', { type: 'object', style: 'deepObject' }),
    parameter('If-Match', { in: 'header', required: true }),
  ],
  body: jsonBody([
    member('name'),
    member('type'),
    member('bornOn', { required: false }),
    member('owner', { nullable: true, type: 'object' }),
    member('weight', { type: 'number' }),
    member('tags', { type: 'array', required: false }),
    member('status', { allowed: onlyTexts('sold', 'In stock', 'in-stock', '1') }),
  ]),
});

const UPDATE_PET_SOURCE = `// PUT /pets/{petId}: Changes a pet. Its kind stays.
//
// updatePet of Pet store

use rust_edge_gateway_sdk::prelude::*;
use std::collections::HashMap;

/// The JSON request body.
#[derive(Deserialize, Serialize)]
struct Body {
    name: String,
    #[serde(rename = "type")]
    type_: String,
    #[serde(rename = "bornOn")]
    born_on: Option<String>,
    #[serde(deserialize_with = "Option::deserialize")]
    owner: Option<HashMap<String, JsonValue>>,
    weight: f64,
    tags: Option<Vec<JsonValue>>,
    status: BodyStatus,
}

#[derive(Deserialize, Serialize)]
enum BodyStatus {
    #[serde(rename = "sold")]
    Sold,
    #[serde(rename = "In stock")]
    InStock,
    #[serde(rename = "in-stock")]
    InStock2,
    #[serde(rename = "1")]
    Value1,
}

fn handle(req: Request) -> Result<Response, HandlerError> {
    let query = req.query_pairs();
    let pet_id: i64 = req.require_path_param("petId")?;
    let dry_run: Option<bool> = query.optional("dryRun")?;
    let reason: Option<String> = query.optional("reason")?;
    let order: Option<String> = query.values("order").one_of(&["name", "age"])?.optional()?;
    let fields: Vec<String> = query.values("fields").split(',').required_list()?;
    let filter: Option<HashMap<String, String>> = query.deep_object("filter").optional_object()?;
    let if_match: &String = req.require_header("If-Match")?;
    let body: Body = req.json()?;

    // TODO: implement updatePet. Types and enums of what it receives have been checked; formats and
    // ranges have not.
    let answer = json!({
        "error": "updatePet is not implemented yet",
        "operation": "PUT /pets/{petId}",
        "description": "Changes a pet. Its kind stays.",
        "received": {
            "path": {
                "petId": pet_id,
            },
            "query": {
                "dryRun": dry_run,
                "reason": reason,
                "order": order,
                "fields": fields,
                "filter": filter,
            },
            "header": {
                "If-Match": if_match,
            },
            "body": body,
        },
    });
    Ok(Response::json(501, answer))
}

handler_loop_result!(handle);
`;

const LIST_PETS_SOURCE = `// GET /pets
//
// listPets of Pet store

use rust_edge_gateway_sdk::prelude::*;

fn handle(_: Request) -> Result<Response, HandlerError> {
    // TODO: implement listPets.
    let answer = json!({
        "error": "listPets is not implemented yet",
        "operation": "GET /pets",
    });
    Ok(Response::json(501, answer))
}

handler_loop_result!(handle);
`;

const MANY = Array.from({ length: 1_000 }, (_, at) => `name-${at}`);

describe('generated handlers', () => {
  let check: CheckHandlers;

  before(async function () {
    // Builds the SDK unless it is cached.
    this.timeout(300_000);
    check = await openCompiler();
  });

  const generated = (of: Operation) => generateHandler(of, 'Pet store');
  const variables = (of: Operation) =>
    [...generated(of).matchAll(/^ {4}let (\w+)/gm)].map(([, name]) => name);

  it('generates the expected source of a handler', () => {
    expect(generated(UPDATE_PET)).to.equal(UPDATE_PET_SOURCE);
    expect(generated(operation())).to.equal(LIST_PETS_SOURCE);
  });

  it('names variables of a generated handler in unique snake_case, without keywords and names in scope', () => {
    const names = [
      'petId',
      'pet_id',
      'HTTPStatus',
      'X-Rate-Limit',
      'ids[]',
      '2fa',
      '_',
      'größe',
      'Self',
      'query',
    ];
    expect(variables(operation({ parameters: names.map((name) => parameter(name)) }))).to.deep.equal([
      'query',
      'pet_id',
      'pet_id_2',
      'http_status',
      'x_rate_limit',
      'ids',
      'value_2fa',
      'value',
      'gr_e',
      'self_',
      'query_2',
      'answer',
    ]);
  });

  it('names a generated handler by its route when the name of the operation is invisible', () => {
    const source = generateHandler(operation({ operationId: '\u202e', description: '\u200b' }), ' \n ');
    expect(source).to.match(/^\/\/ GET \/pets\n\nuse /);
    expect(source).to.include('"error": "GET /pets is not implemented yet"');
  });

  it('generates code that reads values in their style and place', () => {
    const list = { type: 'array', itemType: 'integer', required: true } as const;
    const object = { type: 'object', required: true } as const;
    const cases: readonly (readonly [Partial<Parameter>, string])[] = [
      [{ in: 'path', style: 'label' }, 'String = req.path_values("a").label().required()?'],
      [{ in: 'path', style: 'matrix' }, 'String = req.path_values("a").matrix().required()?'],
      [{ in: 'path', ...list }, 'Vec<i64> = req.path_values("a").split(\',\').required_list()?'],
      [
        { in: 'path', style: 'label', ...list },
        'Vec<i64> = req.path_values("a").split_label().required_list()?',
      ],
      [
        { in: 'path', style: 'matrix', explode: true, ...list },
        'Vec<i64> = req.path_values("a").matrix().required_list()?',
      ],
      [
        { in: 'path', style: 'matrix', explode: true, ...object },
        'HashMap<String, String> = req.path_values("a").matrix_object().required_object()?',
      ],
      [
        { in: 'header', explode: true, ...object },
        'HashMap<String, String> =\n        req.header_values("a").split(\',\').split_pairs().required_object()?',
      ],
      [{ in: 'header', type: 'integer' }, 'Option<i64> = req.header_values("a").optional()?'],
      [list, 'Vec<i64> = query.values("a").required_list()?'],
      [
        { style: 'pipeDelimited', explode: false, ...list },
        'Vec<i64> = query.values("a").split(\'|\').required_list()?',
      ],
      [{ style: 'deepObject', ...list }, 'Vec<i64> = query.deep_list("a").required_list()?'],
      [
        { ...object, memberNames: ['r', 'g'] },
        'HashMap<String, String> =\n        query.members("a", &["r", "g"]).required_object()?',
      ],
      [object, 'HashMap<String, String> =\n        query.other_members("a", &["b"]).required_object()?'],
      [{ in: 'cookie' }, 'Option<String> = cookies.optional("a")?'],
    ];
    for (const [given, expected] of cases) {
      const path = given.in === 'path' ? '/{a}' : '/';
      const source = generated(operation({ path, parameters: [parameter('a', given), parameter('b')] }));
      const [, found] = /let a: ([^;]*);/.exec(source) ?? [];
      expect(found?.replace(/\s+/g, ' ')).to.equal(expected.replace(/\s+/g, ' '));
    }
    const raw = generated(operation({ parameters: [parameter('a', { type: 'object', style: 'text' })] }));
    expect(raw).to.include('    // The raw text.\n    let a: Option<String> = query.optional("a")?;\n');
  });

  it('leaves enums unchecked once they make the source of a generated handler too large', async () => {
    const allowed = MANY.slice(0, 1_000).map((text) => text.padEnd(20, '-'));
    const parameters = MANY.slice(0, 10).map((name) => parameter(name, { allowed: onlyTexts(...allowed) }));
    const source = generated(
      operation({ parameters, body: jsonBody([member('a', { allowed: onlyTexts(...allowed) })]) }),
    );
    expect(source.match(/one_of\(/g)).to.have.lengthOf(2);
    expect(source).to.include('let name_9: Option<String> = query.optional("name-9")?;');
    expect(source).to.include('    a: String,');
    const huge = [...allowed, ...allowed.map((text) => `${text}!`)];
    expect(
      generated(operation({ parameters: [parameter('a', { allowed: onlyTexts(...huge) })] })),
    ).not.to.include('one_of');
    expect(await check([source])).to.deep.equal([]);
  });

  it('generates a constant against which a long list of values is checked', () => {
    const allowed = MANY.slice(0, 60);
    const source = generated(
      operation({
        parameters: [
          parameter('order by', { type: 'array', itemType: 'string', allowed: onlyTexts(...allowed) }),
        ],
        body: jsonBody([member('currency', { allowed: onlyTexts(...allowed) })]),
      }),
    );
    expect(source).to.include('const ORDER_BY: [&str; 60] = [\n    "name-0", "name-1",');
    expect(source).to.include('query.values("order by").one_of(&ORDER_BY)?.optional_list()?;');
    expect(source).to.include('one_of(text, &CURRENCY)').and.to.include('    currency: BodyCurrency,');
  });

  it('generates code that parses a form into a struct', () => {
    const fields = [
      field('title'),
      field('takenAt', { required: false, type: 'integer' }),
      field('photo', { isFile: true }),
      field('more', { isFile: true, type: 'array', required: false }),
    ];
    const source = generated(operation({ method: 'POST', body: formBody(MULTIPART, fields) }));
    expect(source).to.include(`/// The fields of the form.
#[derive(Serialize)]
struct Body {
    title: String,
    #[serde(rename = "takenAt")]
    taken_at: Option<i64>,
    photo: MultipartFile,
    more: Vec<MultipartFile>,
}

impl Body {
    fn read(req: &Request) -> Result<Body, HandlerError> {
        let form = req.multipart()?;
        let fields = form.pairs();
        Ok(Body {
            title: fields.required("title")?,
            taken_at: fields.optional("takenAt")?,
            photo: form.require_file("photo")?.clone(),
            more: form.files_named("more").into_iter().cloned().collect(),
        })
    }
}
`);
    expect(source).to.include('    let body = Body::read(&req)?;\n');
  });

  it('truncates long text of a generated handler, and says how many parameters and fields it omits', async () => {
    const parameters = MANY.map((name) => parameter(name));
    const body = jsonBody(MANY.map((name) => member(name)));
    const source = generated(operation({ description: 'word '.repeat(10_000), parameters, body }));
    expect(source)
      .to.include('// Omitted: 900 more parameters.')
      .and.to.include('// Omitted: 800 more fields.');
    expect(source.length).to.be.below(50_000);
    expect(await check([source])).to.deep.equal([]);
  });

  it('reports compiler warnings when it checks the source of a handler', async () => {
    const unused = LIST_PETS_SOURCE.replace('(_: Request)', '(req: Request)');
    expect((await check([LIST_PETS_SOURCE, unused])).join()).to.include('unused variable');
  });

  it('generates a handler with parameters and a body that compiles without warnings', async () => {
    expect(await check([UPDATE_PET_SOURCE])).to.deep.equal([]);
  });

  it('generates handlers that compile without warnings for hostile texts', async () => {
    const everywhere = HOSTILE_TEXTS.map((text) =>
      generateHandler(
        operation({
          operationId: text,
          description: text,
          parameters: [
            parameter(text, { required: true }),
            parameter(text, { in: 'cookie', required: true }),
          ],
          body: jsonBody([
            ...[member(text), member('pet_id'), member(text)],
            ...[
              member('enum', { allowed: onlyTexts(...HOSTILE_TEXTS) }),
              member('few', { allowed: onlyTexts(text, 'a') }),
            ],
          ]),
        }),
        text,
      ),
    );
    expect(await check(everywhere)).to.deep.equal([]);
  });
});
