/** The operations of a document, as routes of ours. */

import type { EndpointMethod } from '../../endpoint-method.js';
import { AppError } from '../../errors.js';
import { RouteSyntaxError, routeBelow, routeKey } from '../../route-pattern.js';
import type { Warn } from '../warnings.js';
import { descriptionFrom } from './description.js';
import type { Operation } from './document.js';
import { entriesOf, isObject, type JsonObject, own, pointerOf, shortened, specError } from './json.js';
import { Parameters } from './parameters.js';
import { METHODS, PathItems } from './path-items.js';
import type { References } from './references.js';
import { RequestBodies } from './request-body.js';
import { Schemas } from './schemas.js';

/** As endpoints have it. */
const MAX_NAME_LENGTH = 255;

/** One operation as the document has it. */
interface Found {
  /** `GET /pets/{id}`, for messages. */
  readonly label: string;
  readonly method: EndpointMethod | null;
  readonly path: string;
  readonly operationId: string | null;
  readonly item: JsonObject;
  readonly operation: JsonObject;
}

/** One that becomes an endpoint. */
interface Routed extends Found {
  readonly method: EndpointMethod;
  /** What two operations on one route have in common. */
  readonly routeKey: string;
}

/**
 * Reads all operations.
 * @throws AppError invalid_spec naming the operations that contradict each other, or the one that cannot be read
 */
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
      'The servers of single paths and operations are ignored: the first server of the document counts for all',
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
): readonly Found[] {
  const found: Found[] = [];
  const items = new PathItems(references);
  const named = new Map<JsonObject, string>();
  for (const [path, value] of entriesOf(own(document, 'paths'))) {
    if (path.startsWith('x-') || !isObject(value)) continue;
    requirePath(path);
    const item = items.read(value, pointerOf(['paths', path]));
    for (const [key, operation] of Object.entries(item)) {
      const method = METHODS.get(key);
      if (method === undefined || !isObject(operation)) continue;
      const label = `${key.toUpperCase()} ${shortened(path)}`;
      const first = named.get(operation);
      const operationId = first === undefined ? operationIdOf(operation) : null;
      // A reference to another path makes two operations of one, and one name cannot stand for both.
      if (first === undefined) named.set(operation, label);
      else
        warn(
          'references',
          `${label}: is the operation of ${first} by reference, and is named by its method and path`,
        );
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
  // A client or a proxy makes another path of it.
  if (path.split('/').some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment))) {
    throw specError(pointerOf(['paths', path]), 'a path must not have "." or ".." as a segment');
  }
}

/** The operation as an endpoint; undefined, and a warning, when it cannot be one. */
function routeOf(found: Found, basePath: string | null, warn: Warn): Routed | undefined {
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

/** @throws AppError invalid_spec naming the first two operations that have the same */
function requireUnique<T extends Found>(
  all: readonly T[],
  what: string,
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
        `${earlier} and ${one.label} have the same ${what} "${shortened(key)}"; change or remove one of them`,
      );
    }
    labels.set(key, one.label);
  }
}

/** The name of the endpoint: one line of text. */
function nameOf({ label, method, path, operationId }: Routed): string {
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
