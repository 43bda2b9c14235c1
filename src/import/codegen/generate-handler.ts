/**
 * Generates the Rust source of a new endpoint from its OpenAPI operation: a handler that parses the request, checks its
 * types and enums, and answers 501. Documents are untrusted input: their text enters the source only through
 * `rust-text.ts` and `rust-names.ts`.
 */
import { MAX_ROUTE_LENGTH } from '../../model/route-pattern.js';
import type { Operation, Parameter } from '../openapi/document.js';
import { PAIRS, type ParameterCode, type ParametersCode, parameterCode } from './parameters.js';
import { type BodyCode, requestBodyCode } from './request-body.js';
import { RustConstants } from './rust-constants.js';
import { RustNames } from './rust-names.js';
import { comment, oneLine, stringLiteral } from './rust-text.js';

const MAX_DESCRIPTION = 500;
const MAX_NAME = 200;

/** Names of a handler's local variables, besides its parameters. */
const LOCALS = ['req', 'body', 'form', 'answer', ...Object.values(PAIRS)];

/**
 * The source of a handler for one operation. It compiles without warnings.
 * @param operation one whose path `parseRoute` accepts
 * @param title of the document
 */
export function generateHandler(operation: Operation, title: string): string {
  const names = new RustNames('value', LOCALS);
  const constants = new RustConstants();
  const parameters = parameterCode(operation, names, constants);
  const body = operation.body && requestBodyCode(operation.body, constants);
  const blocks = [
    header(operation, title),
    uses(parameters.parameters, body),
    ...constants.definitions,
    ...(body && body.definition.length > 0 ? [body.definition] : []),
    handleFunction(operation, parameters, body),
    ['handler_loop_result!(handle);'],
  ];
  return `${blocks.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

function header(operation: Operation, title: string): string[] {
  const route = routeOf(operation);
  const name = nameOf(operation);
  const description = descriptionOf(operation);
  const origin = [...(name === route ? [] : [name]), oneLine(title, MAX_NAME)].filter((text) => text !== '');
  return comment([
    description === '' ? route : `${route}: ${description}`,
    ...(origin.length > 0 ? [origin.join(' of ')] : []),
  ]);
}

function uses(parameters: readonly ParameterCode[], body: BodyCode | null): string[] {
  const types = [...parameters.map(({ type }) => type), ...(body?.types ?? [])];
  return [
    'use rust_edge_gateway_sdk::prelude::*;',
    ...(types.some((type) => type.includes('HashMap<')) ? ['use std::collections::HashMap;'] : []),
  ];
}

function handleFunction(
  operation: Operation,
  { sources, parameters, omitted }: ParametersCode,
  body: BodyCode | null,
): string[] {
  const takesRequest = parameters.length > 0 || body !== null;
  const statements = [
    ...sources,
    ...parameters.flatMap((parameter) => parameter.statements),
    ...(omitted > 0 ? [`    // Omitted: ${omitted} more parameters.`] : []),
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

/** The 501. It contains every parsed value, so that rustc reports no unused variables. */
function answer(operation: Operation, parameters: readonly ParameterCode[], body: BodyCode | null): string[] {
  const name = nameOf(operation);
  const description = descriptionOf(operation);
  const received = [
    ...LOCATIONS.flatMap((location) => receivedIn(location, parameters)),
    ...(body ? [`            "body": ${body.received},`] : []),
  ];
  return [
    ...comment([`TODO: implement ${name}.${received.length > 0 ? CHECKED : ''}`], '    //'),
    '    let answer = json!({',
    `        "error": ${stringLiteral(`${name} is not implemented yet`)},`,
    `        "operation": ${stringLiteral(`${operation.method} ${operation.path}`)},`,
    ...(description === '' ? [] : [`        "description": ${stringLiteral(description)},`]),
    ...(received.length > 0 ? ['        "received": {', ...received, '        },'] : []),
    '    });',
    '    Ok(Response::json(501, answer))',
  ];
}

/** What the statements before it have done. */
const CHECKED = ' Types and enums of what it receives have been checked; formats and ranges have not.';

const LOCATIONS: readonly Parameter['in'][] = ['path', 'query', 'header', 'cookie'];

/** `json!` recurses for each member: larger objects would exceed the recursion limit of rustc. */
const MEMBERS_PER_OBJECT = 20;

function receivedIn(location: Parameter['in'], parameters: readonly ParameterCode[]): string[] {
  const members = parameters
    .filter(({ parameter }) => parameter.in === location)
    .map(({ parameter, variable }) => `${stringLiteral(parameter.name)}: ${variable},`);
  if (members.length === 0) return [];
  if (members.length <= MEMBERS_PER_OBJECT) {
    return [
      `            "${location}": {`,
      ...members.map((member) => `                ${member}`),
      '            },',
    ];
  }
  const objects = Array.from({ length: Math.ceil(members.length / MEMBERS_PER_OBJECT) }, (_, at) =>
    members.slice(at * MEMBERS_PER_OBJECT, (at + 1) * MEMBERS_PER_OBJECT),
  );
  return [
    `            "${location}": [`,
    ...objects.flatMap((object) => [
      '                {',
      ...object.map((member) => `                    ${member}`),
      '                },',
    ]),
    '            ],',
  ];
}

/** The operation's name without invisible characters; its route when none are left. */
function nameOf(operation: Operation): string {
  return oneLine(operation.name, MAX_NAME) || routeOf(operation);
}

function routeOf({ method, path }: Operation): string {
  return `${method} ${oneLine(path, MAX_ROUTE_LENGTH)}`;
}

function descriptionOf({ description }: Operation): string {
  return oneLine(description ?? '', MAX_DESCRIPTION);
}
