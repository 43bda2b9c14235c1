/** The operations of a document that can become endpoints. */
import { AppError } from '../../errors.js';
import type { EndpointMethod } from '../../model/endpoint-method.js';
import { RouteSyntaxError, routeBelow, routeKey } from '../../model/route-pattern.js';
import type { Warn } from '../warnings.js';
import type { Operation } from './document.js';
import { entriesOf, isObject, type JsonObject, own, pointerOf, shortened, specError } from './json.js';
import { Parameters } from './parameters.js';
import { METHODS, PathItems } from './path-items.js';
import type { References } from './references.js';
import { RequestBodies } from './request-body.js';
import { Schemas } from './schemas.js';

/** Limits of endpoints, characters. */
const MAX_NAME_LENGTH = 255;
const MAX_DESCRIPTION_LENGTH = 65_536;

/** An operation of the document. */
interface DocumentedOperation {
  /** `GET /pets/{id}`, for messages. */
  readonly label: string;
  readonly method: EndpointMethod | null;
  readonly path: string;
  readonly operationId: string | null;
  readonly item: JsonObject;
  readonly operation: JsonObject;
}

/** An operation that becomes an endpoint. */
interface RoutedOperation extends DocumentedOperation {
  readonly method: EndpointMethod;
  /** Equal for operations on the same route. */
  readonly routeKey: string;
}

/** @throws AppError invalid_spec naming the operations that conflict, or the one that is invalid */
export function readOperations(
  document: JsonObject,
  references: References,
  basePath: string | null,
  limit: number,
  warn: Warn,
): readonly Operation[] {
  const found = findOperations(document, references, limit, warn);
  requireUnique(found, 'operationId', ({ operationId }) => operationId);
  if (
    found.some(({ item, operation }) => Object.hasOwn(item, 'servers') || Object.hasOwn(operation, 'servers'))
  ) {
    warn(
      'servers',
      'The servers of single paths and operations are ignored: the first server of the document applies to all',
    );
  }
  const routed = found.flatMap((one) => routeOf(one, basePath, warn) ?? []);
  requireUnique(routed, 'route', (one) => `${one.method} ${one.routeKey}`);
  requireUnique(routed, 'name', nameOf);
  const schemas = new Schemas(references);
  const parameters = new Parameters(references, schemas);
  const bodies = new RequestBodies(references, schemas);
  return routed.map((one) => {
    const { label, method, path, operationId, item, operation } = one;
    const texts = [own(operation, 'summary'), own(operation, 'description')];
    return {
      operationId,
      name: nameOf(one),
      method,
      path,
      description: descriptionFrom(texts, label, warn),
      parameters: parameters.read(label, path, item, operation, warn),
      body: bodies.read(label, operation, warn),
    };
  });
}

function findOperations(
  document: JsonObject,
  references: References,
  limit: number,
  warn: Warn,
): readonly DocumentedOperation[] {
  const found: DocumentedOperation[] = [];
  const items = new PathItems(references);
  const labels = new Map<JsonObject, string>();
  for (const [path, value] of entriesOf(own(document, 'paths'))) {
    if (path.startsWith('x-') || !isObject(value)) continue;
    requirePath(path);
    const item = items.read(value, pointerOf(['paths', path]));
    for (const [key, operation] of Object.entries(item)) {
      const method = METHODS.get(key);
      if (method === undefined || !isObject(operation)) continue;
      const label = `${key.toUpperCase()} ${shortened(path)}`;
      const first = labels.get(operation);
      const operationId = first === undefined ? operationIdOf(operation) : null;
      // Two paths may share an operation by reference, but names are unique.
      if (first === undefined) labels.set(operation, label);
      else
        warn('references', `${label}: references the operation of ${first}; its name is its method and path`);
      found.push({ label, method, path, operationId, item, operation });
      if (found.length > limit) {
        throw specError('/paths', `has more than ${limit} operations (IMPORT_OPERATIONS_LIMIT)`);
      }
    }
  }
  return found;
}

function operationIdOf(operation: JsonObject): string | null {
  const id = own(operation, 'operationId');
  return typeof id === 'string' && id !== '' ? id : null;
}

function requirePath(path: string): void {
  // Clients and proxies resolve dot segments, so the path would never be requested.
  if (path.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) {
    throw specError(pointerOf(['paths', path]), 'a path must not have "." or ".." as a segment');
  }
}

/** Adds the route; warns and returns undefined when the operation cannot be an endpoint. */
function routeOf(
  found: DocumentedOperation,
  basePath: string | null,
  warn: Warn,
): RoutedOperation | undefined {
  const { label, method, path } = found;
  if (method === null) {
    warn('left-out', `${label}: left out: endpoints have the methods GET, POST, PUT, DELETE and PATCH`);
    return undefined;
  }
  try {
    return { ...found, method, routeKey: routeKey(routeBelow(basePath, path)) };
  } catch (thrown) {
    if (!(thrown instanceof RouteSyntaxError)) throw thrown;
    warn('left-out', `${label}: left out: the path ${shortened(thrown.message)}`);
    return undefined;
  }
}

/** @throws AppError invalid_spec naming the first two operations with the same key */
function requireUnique<T extends DocumentedOperation>(
  all: readonly T[],
  keyName: string,
  keyOf: (one: T) => string | null,
): void {
  const labels = new Map<string, string>();
  for (const one of all) {
    const key = keyOf(one);
    if (key === null) continue;
    const earlier = labels.get(key);
    if (earlier !== undefined) {
      throw new AppError(
        'invalid_spec',
        `${earlier} and ${one.label} have the same ${keyName} "${shortened(key)}"; change or remove one of them`,
      );
    }
    labels.set(key, one.label);
  }
}

/** The name of the endpoint. */
function nameOf({ label, method, path, operationId }: RoutedOperation): string {
  const name = operationId ?? `${method} ${path}`;
  if (name.trim() === '' || /\p{Cc}/u.test(name)) {
    throw specError(label, 'the operationId must be one line of text, without control characters');
  }
  if (name.length > MAX_NAME_LENGTH) {
    throw specError(
      label,
      `needs an operationId of at most ${MAX_NAME_LENGTH} characters; "${name.slice(0, 60)}…" is longer`,
    );
  }
  return name;
}

/** The first text that is not blank, truncated with a warning if it is too long; null when there is none. */
export function descriptionFrom(texts: readonly unknown[], label: string, warn: Warn): string | null {
  const text = texts.find((value): value is string => typeof value === 'string' && value.trim() !== '');
  if (text === undefined) return null;
  if (text.length <= MAX_DESCRIPTION_LENGTH) return text;
  warn('descriptions', `${label}: the description is truncated to ${MAX_DESCRIPTION_LENGTH} characters`);
  // Does not split a surrogate pair.
  return `${text.slice(0, MAX_DESCRIPTION_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
