/** Makes the routes and names of operations unique: of endpoints, both have to be. */
import type { Warn } from '../warnings.js';
import type { Operation } from './document.js';
import { shortened } from './json.js';

/** Limit of endpoints, characters. */
const MAX_NAME_LENGTH = 255;

/** An operation that has been read, but has no name yet. */
export interface UnnamedOperation extends Omit<Operation, 'operationId' | 'name'> {
  /** `GET /pets/{id}`, for messages. */
  readonly label: string;
  /** Equal for operations that match the same requests. */
  readonly routeKey: string;
  /** The operation id as in the document. */
  readonly operationId: unknown;
}

/** The first of the operations that match the same requests is kept. One warning names all others. */
export function withoutSameRoutes<T extends UnnamedOperation>(all: readonly T[], warn: Warn): readonly T[] {
  const kept = new Map<string, T>();
  const others: string[] = [];
  for (const one of all) {
    const earlier = kept.get(one.routeKey);
    if (earlier) others.push(`${one.label} (like ${earlier.label})`);
    else kept.set(one.routeKey, one);
  }
  if (others.length > 0) {
    warn('routes', `Left out, because an earlier operation matches the same requests: ${others.join(', ')}`);
  }
  return [...kept.values()];
}

/**
 * The name is the operationId. It is method and path of an operation without one, or with one that cannot be a name or
 * is that of another; one warning names all of the latter.
 */
export function withNames(all: readonly UnnamedOperation[], warn: Warn): readonly Operation[] {
  // A path as an operationId is only unique if it is that of its own operation.
  const owners = new Map(all.map(({ label, method, path }) => [`${method} ${path}`, label]));
  const renamed: string[] = [];
  const operations = all.flatMap(({ label, routeKey: _, operationId, ...operation }): Operation[] => {
    const id = nameFrom(operationId, label, warn);
    const route = `${operation.method} ${operation.path}`;
    const owner = id === null ? label : (owners.get(id) ?? label);
    if (owner !== label) renamed.push(`${label} (that of ${owner})`);
    if (id !== null && owner === label) {
      owners.set(id, label);
      return [{ operationId: id, name: id, ...operation }];
    }
    if (route.length <= MAX_NAME_LENGTH) return [{ operationId: null, name: route, ...operation }];
    warn(
      'left-out',
      `${label}: left out: needs an operationId of its own as its name; the path is longer than ${MAX_NAME_LENGTH} characters`,
    );
    return [];
  });
  if (renamed.length > 0) {
    warn(
      'names',
      `Named by method and path, because the operationId is that of another operation: ${renamed.join(', ')}`,
    );
  }
  return operations;
}

/** The operationId, if it can be a name. */
function nameFrom(operationId: unknown, label: string, warn: Warn): string | null {
  if (operationId === undefined || operationId === '') return null;
  const reject = (reason: string) => {
    warn('names', `${label}: the operationId ${reason}; the name is method and path instead`);
    return null;
  };
  if (typeof operationId !== 'string') return reject('is not text');
  if (operationId.trim() === '' || /[\p{Cc}\p{Surrogate}]/u.test(operationId)) {
    return reject(`"${shortened(operationId)}" is not one line of text`);
  }
  if (operationId.length <= MAX_NAME_LENGTH) return operationId;
  return reject(`"${operationId.slice(0, 60)}…" is longer than ${MAX_NAME_LENGTH} characters`);
}
