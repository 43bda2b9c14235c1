/** Assigns the handlers of a bundle to its operations: by the routes of the manifest, else by name. No I/O. */
import type { MatchProblem } from '../../model/imported-parts.js';
import type { HandlerFile } from './handler-files.js';
import type { ManifestRoute } from './manifest.js';
import type { PlannedOperation } from './plan-operations.js';

export interface Assignment {
  readonly handlerOf: ReadonlyMap<PlannedOperation, HandlerFile>;
  readonly problems: readonly MatchProblem[];
  /** Handlers without an operation. */
  readonly unused: readonly HandlerFile[];
}

/** A handler that a route names may serve several routes, and is still matched to an operation by its name. */
export function assignHandlers(
  planned: readonly PlannedOperation[],
  handlers: readonly HandlerFile[],
): Assignment {
  const byBase = new Map(handlers.map((handler) => [handler.base, handler]));
  const handlerOf = new Map<PlannedOperation, HandlerFile>();
  const problems: MatchProblem[] = [];
  for (const each of planned) {
    if (!each.route) continue;
    const handler = handlerOfRoute(each.route, handlers, byBase);
    if (handler) handlerOf.set(each, handler);
    else problems.push(missingHandler(each.operation.name, each.route, handlers.length));
  }
  const unrouted = planned.filter(({ route }) => !route).map((plan) => ({ ...plan.operation, plan }));
  const byName = matchByName(unrouted, handlers);
  for (const [{ plan }, handler] of byName.matched) handlerOf.set(plan, handler);
  const used = new Set(handlerOf.values());
  return {
    handlerOf,
    problems: [...problems, ...byName.problems],
    unused: handlers.filter((handler) => !used.has(handler) && !byName.ambiguous.has(handler)),
  };
}

function handlerOfRoute(
  { handler }: ManifestRoute,
  handlers: readonly HandlerFile[],
  byBase: ReadonlyMap<string, HandlerFile>,
): HandlerFile | undefined {
  if (handler !== null) return byBase.get(handler);
  return handlers.length === 1 ? handlers[0] : undefined;
}

function missingHandler(name: string, { handler, place }: ManifestRoute, count: number): MatchProblem {
  if (handler === null) {
    const message = `${place} names no handler for ${name}, and the bundle has ${count}: which one is only clear with one.`;
    return { name, handler: null, message };
  }
  const file = `${handler}.rs`;
  return {
    name,
    handler: file,
    message: `${place} names ${file} as the handler of ${name}, but there is no such file.`,
  };
}

export interface NamedOperation {
  readonly operationId: string | null;
  /** What it is called in messages. */
  readonly name: string;
}

export interface NamedHandler {
  /** Path in the bundle, for messages. */
  readonly path: string;
  /** File name without folder and suffix. */
  readonly base: string;
}

export interface Matches<O, H> {
  readonly matched: ReadonlyMap<O, H>;
  readonly problems: readonly MatchProblem[];
  /** Operations and handlers that are part of a problem. */
  readonly ambiguous: ReadonlySet<O | H>;
}

/**
 * Matches operations and handlers by name. A file whose base name is the operationId is its handler. The rest is
 * compared by letters and digits without case: `getHTTPStatus`, `get_http_status` and `get-http-status` are the same
 * name, as are `getV2Pets` and `get_v_2_pets`, `repos/get` and `repos_get`, `_health` and `health`. Ambiguous names are
 * not matched but reported.
 * @param operations with unique operationIds
 * @param handlers with unique base names
 */
export function matchByName<O extends NamedOperation, H extends NamedHandler>(
  operations: readonly O[],
  handlers: readonly H[],
): Matches<O, H> {
  const exact = matchExactly(operations, handlers);
  const used = new Set(exact.values());
  const remainingHandlers = groupByName(
    handlers.filter((handler) => !used.has(handler)),
    ({ base }) => base,
  );
  const remainingOperations = groupByName(
    operations.filter((operation) => !exact.has(operation)),
    ({ operationId }) => operationId ?? '',
  );
  const matched = new Map(exact);
  const problems: MatchProblem[] = [];
  const ambiguous = new Set<O | H>();
  for (const [name, sameOperations] of remainingOperations) {
    const sameHandlers = remainingHandlers.get(name) ?? [];
    const [operation] = sameOperations;
    const [handler] = sameHandlers;
    if (!operation || !handler) continue;
    if (sameOperations.length === 1 && sameHandlers.length === 1) {
      matched.set(operation, handler);
      continue;
    }
    for (const each of [...sameOperations, ...sameHandlers]) ambiguous.add(each);
    problems.push(ambiguity(sameOperations, sameHandlers));
  }
  return { matched, problems, ambiguous };
}

/** The letters and digits of a name in lower case. */
export function normalizeName(name: string): string {
  return name
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]/gu, '');
}

/** Groups by normalized name, without items whose normalized name is empty. */
function groupByName<T>(items: readonly T[], nameOf: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = normalizeName(nameOf(item));
    if (name === '') continue;
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

function matchExactly<O extends NamedOperation, H extends NamedHandler>(
  operations: readonly O[],
  handlers: readonly H[],
): Map<O, H> {
  const byBase = new Map(handlers.map((handler) => [handler.base, handler]));
  const matched = new Map<O, H>();
  for (const operation of operations) {
    const handler = operation.operationId === null ? undefined : byBase.get(operation.operationId);
    if (handler) matched.set(operation, handler);
  }
  return matched;
}

function ambiguity(operations: readonly NamedOperation[], handlers: readonly NamedHandler[]): MatchProblem {
  const names = operations.map(({ name }) => name);
  const files = handlers.map(({ path }) => path);
  const [name = null] = names;
  const [handler = null] = files;
  return {
    name: names.length === 1 ? name : null,
    handler: files.length === 1 ? handler : null,
    message:
      `${listed(files)} could be the handler of ${listed(names)}, so none was used: ` +
      'name one file exactly as each operationId, or list the routes in bundle.yaml.',
  };
}

function listed(names: readonly string[]): string {
  return names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`;
}
