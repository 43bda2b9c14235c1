/**
 * Writes the Rust source that an imported operation begins with: a handler that takes the request apart, checks it, and
 * answers 501 with what it has received and what is left to write. Documents come from strangers: their text reaches the
 * source only through `rust-text.ts` and `rust-names.ts`.
 */
import { MAX_ROUTE_LENGTH } from '../../route-pattern.js';
import type { Operation, Parameter } from '../openapi/document.js';
import { type ReadBody, readBody } from './body.js';
import { HELPERS, type Helper, helperSource, usesOf, withNeeds } from './helpers.js';
import { type ReadParameter, readParameters } from './parameters.js';
import { RustNames } from './rust-names.js';
import { comment, oneLine, stringLiteral } from './rust-text.js';

const MAX_DESCRIPTION = 500;
const MAX_NAME = 200;

/** Local names of a handler, besides those of parameters. */
const LOCALS = ['req', 'body', 'form', 'answer'];

/**
 * The source of a handler for one operation. It compiles without warnings.
 * @param operation one whose path `parseRoute` accepts
 * @param title of the document
 */
export function generateHandler(operation: Operation, title: string): string {
  const names = new RustNames('value', [...LOCALS, ...HELPERS]);
  const { read, leftOut } = readParameters(operation, names);
  const body = operation.body && readBody(operation.body);
  const helpers = withNeeds([...read.flatMap((parameter) => parameter.helpers), ...(body?.helpers ?? [])]);
  const blocks = [
    introduction(operation, title),
    uses(body, helpers),
    ...(body && body.definition.length > 0 ? [body.definition] : []),
    ...helpers.map((helper) => [helperSource(helper)]),
    handle(operation, read, leftOut, body),
    ['handler_loop_result!(handle);'],
  ];
  return `${blocks.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function introduction(operation: Operation, title: string): string[] {
  const route = routeOf(operation);
  const name = nameOf(operation);
  const description = descriptionOf(operation);
  const origin = [...(name === route ? [] : [name]), oneLine(title, MAX_NAME)].filter((text) => text !== '');
  return comment([
    description === '' ? route : `${route}: ${description}`,
    ...(origin.length > 0 ? [origin.join(' of ')] : []),
  ]);
}

function uses(body: ReadBody | null, helpers: readonly Helper[]): string[] {
  const paths = usesOf([...(body?.types ?? []), ...helpers.map(helperSource)]);
  return ['rust_edge_gateway_sdk::prelude::*', ...paths].map((path) => `use ${path};`);
}

function handle(
  operation: Operation,
  parameters: readonly ReadParameter[],
  leftOut: number,
  body: ReadBody | null,
): string[] {
  const takesRequest = parameters.length > 0 || body !== null;
  const statements = [
    ...parameters.flatMap((parameter) => parameter.statements),
    ...(leftOut > 0 ? [`    // Left out: ${leftOut} more parameters.`] : []),
    ...(body?.statements ?? []),
  ];
  return [
    `fn handle(${takesRequest ? 'req' : '_'}: Request) -> Result<Response, HandlerError> {`,
    ...statements,
    ...(statements.length > 0 ? [''] : []),
    ...answer(operation, parameters, body),
    '}',
  ];
}

/** The 501. That it shows all values leaves none of them unused. */
function answer(operation: Operation, parameters: readonly ReadParameter[], body: ReadBody | null): string[] {
  const name = nameOf(operation);
  const description = descriptionOf(operation);
  const leftToWrite = `what ${name} does with a request that is in order, and its answer`;
  const received = [
    ...PLACES.flatMap((place) => receivedFrom(place, parameters)),
    ...(body ? [`            "body": ${body.shown},`] : []),
  ];
  return [
    ...comment([`Left to write: ${leftToWrite}.`], '    //'),
    '    let answer = json!({',
    `        "error": ${stringLiteral(`${name} is not implemented yet`)},`,
    `        "operation": ${stringLiteral(`${operation.method} ${operation.path}`)},`,
    `        "left_to_write": ${stringLiteral(description === '' ? leftToWrite : `${leftToWrite}: ${description}`)},`,
    ...(received.length > 0 ? ['        "received": {', ...received, '        },'] : []),
    '    });',
    '    Ok(Response::json(501, answer))',
  ];
}

const PLACES: readonly Parameter['in'][] = ['path', 'query', 'header', 'cookie'];

/** So many members of an object are no trouble for the recursion of `json!`. */
const MEMBERS_PER_OBJECT = 20;

function receivedFrom(place: Parameter['in'], parameters: readonly ReadParameter[]): string[] {
  const members = parameters
    .filter(({ parameter }) => parameter.in === place)
    .map(({ parameter, variable }) => `${stringLiteral(parameter.name)}: ${variable},`);
  if (members.length === 0) return [];
  if (members.length <= MEMBERS_PER_OBJECT) {
    return [
      `            "${place}": {`,
      ...members.map((member) => `                ${member}`),
      '            },',
    ];
  }
  const objects = Array.from({ length: Math.ceil(members.length / MEMBERS_PER_OBJECT) }, (_, at) =>
    members.slice(at * MEMBERS_PER_OBJECT, (at + 1) * MEMBERS_PER_OBJECT),
  );
  return [
    `            "${place}": [`,
    ...objects.flatMap((object) => [
      '                {',
      ...object.map((member) => `                    ${member}`),
      '                },',
    ]),
    '            ],',
  ];
}

/** As it is written in texts, without characters that do not show. */
function nameOf(operation: Operation): string {
  return oneLine(operation.name, MAX_NAME) || routeOf(operation);
}

function routeOf({ method, path }: Operation): string {
  return `${method} ${oneLine(path, MAX_ROUTE_LENGTH)}`;
}

function descriptionOf({ description }: Operation): string {
  return oneLine(description ?? '', MAX_DESCRIPTION);
}
