/** The operations of a document that can become endpoints. */
import type { EndpointMethod } from '../../model/endpoint-method.js';
import type { ValidateMode } from '../../model/policies/validate.js';
import { RouteSyntaxError, routeBelow, routeKey } from '../../model/route-pattern.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { storable } from '../../util/text.js';
import type { Warn } from '../warnings.js';
import type { Operation } from './document.js';
import { documentError, entriesOf, own, pointerOf, shortened, specError } from './json.js';
import { orLeftOut } from './left-out.js';
import { Parameters } from './parameters.js';
import { METHODS, PathItems } from './path-items.js';
import type { References } from './references.js';
import { RequestBodies } from './request-body.js';
import { Schemas } from './schemas.js';
import { type UnnamedOperation, withNames, withoutSameRoutes } from './unique-operations.js';
import { RequestValidation } from './validation.js';

/** Limit of endpoints, characters. */
const MAX_DESCRIPTION_LENGTH = 65_536;
/** Most parameters in one list: that of a path item is shared by its operations, and merged with the own of each. */
const MAX_PARAMETERS = 500;

/** An operation of the document. */
interface DocumentedOperation {
  /** `GET /pets/{id}`, for messages. */
  readonly label: string;
  readonly method: EndpointMethod | null;
  readonly path: string;
  readonly item: JsonObject;
  readonly operation: JsonObject;
}

/**
 * Operations that cannot be read, or cannot be endpoints, are left out with a warning.
 * @throws AppError invalid_spec when there are too many operations, or their schemas are too complex
 */
export function readOperations(
  document: JsonObject,
  references: References,
  basePath: string | null,
  options: { readonly operations: number; readonly validation?: ValidateMode },
  warn: Warn,
): readonly Operation[] {
  const documented = findOperations(document, references, options.operations, warn);
  if (
    documented.some(
      ({ item, operation }) => Object.hasOwn(item, 'servers') || Object.hasOwn(operation, 'servers'),
    )
  ) {
    warn(
      'servers',
      'The servers of single paths and operations are ignored: the first server of the document applies to all',
    );
  }
  const schemas = new Schemas(references);
  const parameters = new Parameters(references, schemas);
  const bodies = new RequestBodies(references, schemas);
  // Without quotes, 3.0 is the number 3.
  const isOld = /^3(\.0|$)/.test(String(own(document, 'openapi')));
  const sources = { references, parameters, schemas, isOld };
  const validation = new RequestValidation(options.validation ?? 'off', sources, warn);
  const readable = documented.flatMap((one) =>
    orLeftOut(one.label, warn, (): UnnamedOperation => {
      const { label, path, item, operation } = one;
      const method = methodOf(one);
      const key = `${method} ${routeKeyOf(label, basePath, path)}`;
      for (const holder of [item, operation]) requireParameterList(own(holder, 'parameters'), label);
      const texts = [own(operation, 'summary'), own(operation, 'description')];
      const read = parameters.read(label, path, item, operation, warn);
      return {
        label,
        routeKey: key,
        operationId: own(operation, 'operationId'),
        method,
        path,
        description: descriptionFrom(texts, label, warn),
        parameters: read,
        body: bodies.read(label, operation, warn),
        ...validation.of(label, read, operation),
      };
    }),
  );
  return withNames(withoutSameRoutes(readable, warn), warn);
}

function findOperations(
  document: JsonObject,
  references: References,
  limit: number,
  warn: Warn,
): readonly DocumentedOperation[] {
  const documented: DocumentedOperation[] = [];
  const items = new PathItems(references);
  for (const [path, value] of entriesOf(own(document, 'paths'))) {
    if (path.startsWith('x-')) continue;
    const location = pointerOf(['paths', path]);
    const [item = {}] = orLeftOut(location, warn, () => items.read(value, location));
    for (const [key, operation] of Object.entries(item)) {
      const method = METHODS.get(key);
      if (method === undefined) continue;
      const label = `${key.toUpperCase()} ${shortened(path)}`;
      if (!isObject(operation)) {
        warn('left-out', `${label}: left out: is not an object`);
        continue;
      }
      documented.push({ label, method, path, item, operation });
      if (documented.length > limit) {
        throw documentError('/paths', `has more than ${limit} operations (IMPORT_OPERATIONS_LIMIT)`);
      }
    }
  }
  return documented;
}

function methodOf({ label, method }: DocumentedOperation): EndpointMethod {
  if (method !== null) return method;
  throw specError(label, 'endpoints have the methods GET, POST, PUT, DELETE and PATCH');
}

function routeKeyOf(label: string, basePath: string | null, path: string): string {
  try {
    return routeKey(routeBelow(basePath, path));
  } catch (thrown) {
    if (!(thrown instanceof RouteSyntaxError)) throw thrown;
    throw specError(label, `the path ${shortened(thrown.message)}`);
  }
}

function requireParameterList(list: unknown, label: string): void {
  if (list === undefined || list === null) return;
  if (!Array.isArray(list)) throw specError(label, 'its parameters are not a list');
  if (list.length > MAX_PARAMETERS) {
    throw specError(label, `has more than ${MAX_PARAMETERS} parameters`);
  }
}

/** The first text that is not blank, with a warning if it has to be changed; null when there is none. */
export function descriptionFrom(texts: readonly unknown[], label: string, warn: Warn): string | null {
  const text = texts.find((value): value is string => typeof value === 'string' && value.trim() !== '');
  if (text === undefined) return null;
  const stored = storable(text);
  if (stored !== text) {
    warn('descriptions', `${label}: characters of the description that are not Unicode text are replaced`);
  }
  if (stored.length <= MAX_DESCRIPTION_LENGTH) return stored;
  warn('descriptions', `${label}: the description is truncated to ${MAX_DESCRIPTION_LENGTH} characters`);
  // Does not split a surrogate pair.
  return `${stored.slice(0, MAX_DESCRIPTION_LENGTH - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
