/**
 * Which handler stands for which operation, by name: `list_pets.rs` for the operationId `listPets`. Pure.
 *
 * A file whose base name is the operationId is its handler. Between the others, case and everything but letters and digits
 * mean nothing: `getHTTPStatus`, `get_http_status`, `get-http-status` and `GetHttpStatus` are one name, so are `getV2Pets`,
 * `get_v2_pets` and `get_v_2_pets`, `repos/get` and `repos_get`, `_health` and `health`. Where that leaves a doubt, nothing
 * is matched and the doubt is reported.
 */
import type { MatchProblem } from '../imported-api.js';

export interface NamedOperation {
  readonly operationId: string | null;
  /** What it is called in messages. */
  readonly name: string;
}

export interface NamedHandler {
  /** What it is called in messages: its place in the bundle. */
  readonly path: string;
  /** File name without folder and suffix. */
  readonly base: string;
}

export interface Matches<O, H> {
  readonly matched: ReadonlyMap<O, H>;
  readonly problems: readonly MatchProblem[];
  /** Those that a problem names. */
  readonly doubtful: ReadonlySet<O | H>;
}

/** @param operations no two with the same operationId @param handlers no two with the same base name */
export function matchHandlers<O extends NamedOperation, H extends NamedHandler>(
  operations: readonly O[],
  handlers: readonly H[],
): Matches<O, H> {
  const exact = matchExactly(operations, handlers);
  const used = new Set(exact.values());
  const offered = groupByName(
    handlers.filter((handler) => !used.has(handler)),
    ({ base }) => base,
  );
  const wanting = groupByName(
    operations.filter((operation) => !exact.has(operation)),
    ({ operationId }) => operationId ?? '',
  );
  const matched = new Map(exact);
  const problems: MatchProblem[] = [];
  const doubtful = new Set<O | H>();
  for (const [name, candidates] of wanting) {
    const [operation, ...others] = candidates;
    const [handler, ...rivals] = offered.get(name) ?? [];
    if (!operation || !handler) continue;
    if (others.length === 0 && rivals.length === 0) {
      matched.set(operation, handler);
      continue;
    }
    for (const each of [...candidates, handler, ...rivals]) doubtful.add(each);
    problems.push(ambiguity(candidates, [handler, ...rivals]));
  }
  return { matched, problems, doubtful };
}

/** What is left of a name when case and separators mean nothing. Empty when it has neither letters nor digits. */
export function normalizeName(name: string): string {
  return name
    .normalize('NFC')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]/gu, '');
}

/** By normalised name; without those whose name says nothing. */
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
