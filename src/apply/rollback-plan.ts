/**
 * Plans the rollback of an apply: the inverse of all its changes, against the objects that exist now. What others have
 * made of these objects, or put into them, is theirs: the plan names what cannot be rolled back because of that. Pure.
 */
import { joinRoute, RouteSyntaxError } from '../model/route-pattern.js';
import { mapInParts, Pauses } from '../util/pauses.js';
import { type Conflict, containersOf, type StoredObject } from './changes.js';
import { changedFields } from './compare.js';
import { inverseOf } from './inverse.js';
import { collectionKey, endpointKey, keyOf, serviceKey, titleOf } from './keys.js';
import type { CollectionObject, EndpointObject, InstallationObject, ObjectChange } from './objects.js';

/** What a rollback writes, and what it leaves alone. */
export interface RollbackPlan {
  readonly changes: readonly ObjectChange[];
  /** What others have changed, or taken away, since. */
  readonly warnings: readonly string[];
  /** Objects that something of others depends on: they are not among the changes. */
  readonly blocked: readonly Conflict[];
}

export interface RollbackOptions {
  readonly stack: string;
  /** Whether what an endpoint served before, an older version or several, can serve again. */
  canServe?(id: string): boolean;
}

/**
 * @param made the changes of the apply
 * @param existing all objects
 */
export async function planRollback(
  made: readonly ObjectChange[],
  existing: readonly StoredObject[],
  { stack, canServe = () => true }: RollbackOptions,
): Promise<RollbackPlan> {
  const byId = new Map(existing.map((one) => [one.id, one.object]));
  const byKey = new Map(await mapInParts(existing, ({ object }) => [keyOf(object), object] as const));
  const warnings: string[] = [];
  const blocked: Conflict[] = [];
  let changes: ObjectChange[] = [];
  const pauses = new Pauses();
  for (const change of [...made].reverse()) {
    await pauses.here();
    const object = (change.after ?? change.before) as InstallationObject;
    const now = change.id === null ? undefined : byId.get(change.id);
    const inverse = inverseOf(change, now, byKey.get(keyOf(object)));
    warnings.push(...inverse.warnings);
    if (inverse.change) changes.push(...keepCurrentIfGone(inverse.change, canServe, warnings));
  }
  const mine = new Set(made.map(({ id }) => id));
  const others = existing.filter(({ id, object }) => !mine.has(id) && object.stack !== stack);
  changes = changes.flatMap((change) => keepBasePathOf(others, change, blocked));
  await pauses.here();
  changes.push(...endpointsMovedByCollection(existing, changes));
  for (let left = -1; left !== changes.length; ) {
    left = changes.length;
    const known = new Set([...byKey.keys(), ...createdKeys(changes)]);
    changes = changes.flatMap((change) => withoutDeletedReferences(change, known, warnings));
    await pauses.here();
    changes = withRoutes(existing, changes);
    await pauses.here();
    changes = withoutOccupiedKeys(existing, changes, warnings);
    await pauses.here();
    changes = withoutContainers(existing, changes, blocked);
  }
  return { changes, warnings, blocked };
}

/** Keeps what an endpoint serves now when a version that it served before was deleted. */
function keepCurrentIfGone(
  change: ObjectChange,
  canServe: (id: string) => boolean,
  warnings: string[],
): ObjectChange[] {
  const { id, before, after } = change;
  const now = before?.kind === 'endpoint' ? before.running : false;
  if (after?.kind !== 'endpoint' || after.running !== 'other' || now === 'other') return [change];
  if (id !== null && canServe(id)) return [change];
  warnings.push(
    `The ${titleOf(after)}: some versions that served before have been deleted; ` +
      (before ? 'what serves now stays' : 'nothing serves'),
  );
  return changeTo(change, { ...after, running: now });
}

/** Keeps the base path of a collection when endpoints of others would move with it. */
function keepBasePathOf(
  others: readonly StoredObject[],
  change: ObjectChange,
  blocked: Conflict[],
): ObjectChange[] {
  const { before, after } = change;
  if (before?.kind !== 'collection' || after?.kind !== 'collection') return [change];
  if (before.base_path === after.base_path) return [change];
  const moved = others.find(({ object }) => isIn(object, before));
  if (!moved) return [change];
  const message = `The ${titleOf(moved.object)}, which others have made, would move with the base path of its collection`;
  blocked.push({ object: moved.object, message });
  return changeTo(change, { ...after, base_path: before.base_path });
}

function isIn(object: InstallationObject, { host, name }: CollectionObject): object is EndpointObject {
  return object.kind === 'endpoint' && object.collection === name && object.collection_host === host;
}

/** Endpoints that no other change touches, and that move with the base path of their collection. */
function endpointsMovedByCollection(
  existing: readonly StoredObject[],
  changes: readonly ObjectChange[],
): ObjectChange[] {
  const changed = new Set(changes.map(({ id }) => id));
  const basePaths = finalBasePaths(existing, changes);
  return existing.flatMap(({ id, object }) => {
    if (object.kind !== 'endpoint' || changed.has(id)) return [];
    const route = finalRoute(object, basePaths);
    if (route === object.route) return [];
    const after = { ...object, route };
    const fields = changedFields(object, after);
    return fields.length === 0 ? [] : [{ action: 'update' as const, id, before: object, after, fields }];
  });
}

/** Puts recreated endpoints where their collections are now. */
function withRoutes(existing: readonly StoredObject[], changes: readonly ObjectChange[]): ObjectChange[] {
  const basePaths = finalBasePaths(existing, changes);
  return changes.flatMap((change) => {
    const { before, after } = change;
    if (before || after?.kind !== 'endpoint') return [change];
    const route = finalRoute(after, basePaths);
    return route === after.route ? [change] : changeTo(change, { ...after, route });
  });
}

type BasePaths = ReadonlyMap<string, string | null>;

/** The base paths after the rollback, by the keys of collections. */
function finalBasePaths(existing: readonly StoredObject[], changes: readonly ObjectChange[]): BasePaths {
  const all = [...existing.map(({ object }) => object), ...changes.map(({ after }) => after)];
  return new Map(
    all.flatMap((object) =>
      object?.kind === 'collection' ? [[keyOf(object), object.base_path] as const] : [],
    ),
  );
}

function finalRoute(
  { collection, collection_host, path, route }: EndpointObject,
  basePaths: BasePaths,
): string {
  if (collection === null || collection_host === null) return route;
  const basePath = basePaths.get(collectionKey(collection_host, collection));
  if (basePath === undefined) return route;
  try {
    return joinRoute(basePath, path);
  } catch (thrown) {
    if (thrown instanceof RouteSyntaxError) return route;
    throw thrown;
  }
}

function createdKeys(changes: readonly ObjectChange[]): string[] {
  return changes.flatMap(({ action, after }) => (action === 'create' && after ? [keyOf(after)] : []));
}

/** Drops references to objects that others have deleted, and objects that cannot be without these. */
function withoutDeletedReferences(
  change: ObjectChange,
  known: ReadonlySet<string>,
  warnings: string[],
): ObjectChange[] {
  const { before, after } = change;
  if (after?.kind === 'collection' && !before && containersOf(after).some(({ key }) => !known.has(key))) {
    warnings.push(`The ${titleOf(after)}: its domain was deleted since; it does not come back`);
    return [];
  }
  if (after?.kind !== 'endpoint') return [change];
  const old = before?.kind === 'endpoint' ? before : undefined;
  let target = after;
  const { collection, collection_host } = after;
  if (
    collection !== null &&
    collection_host !== null &&
    !known.has(collectionKey(collection_host, collection))
  ) {
    warnings.push(
      `The ${titleOf(after)}: its collection "${collection}" was deleted since; it ` +
        (old ? 'stays where it is' : 'does not come back'),
    );
    if (!old) return [];
    target = { ...target, ...placeOf(old) };
  }
  const bindings = Object.entries(target.bindings);
  const there = bindings.filter(([, name]) => known.has(serviceKey(name)));
  if (there.length < bindings.length) {
    const gone = bindings.flatMap(([, name]) => (known.has(serviceKey(name)) ? [] : [`"${name}"`]));
    warnings.push(
      `The ${titleOf(after)}: services were deleted since, and are not bound: ${gone.join(', ')}`,
    );
    target = { ...target, bindings: Object.fromEntries(there) };
  }
  return target === after ? [change] : changeTo(change, target);
}

function placeOf({ collection, collection_host, path, route }: EndpointObject) {
  return { collection, collection_host, path, route };
}

/** Leaves out what would get a key that an object of others has by now. */
function withoutOccupiedKeys(
  existing: readonly StoredObject[],
  changes: readonly ObjectChange[],
  warnings: string[],
): ObjectChange[] {
  const changed = new Set(changes.map(({ id }) => id));
  const basePaths = finalBasePaths(existing, changes);
  const finalKey = (object: InstallationObject) => {
    const route = object.kind === 'endpoint' ? finalRoute(object, basePaths) : undefined;
    if (object.kind !== 'endpoint' || route === undefined || route === object.route) return keyOf(object);
    return endpointKey(object.host, object.method, route);
  };
  const counts = new Map<string, number>();
  for (const object of [
    ...existing.flatMap((one) => (changed.has(one.id) ? [] : [one.object])),
    ...changes.flatMap(({ after }) => after ?? []),
  ]) {
    const key = finalKey(object);
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return changes.flatMap((change) => {
    const { before, after } = change;
    if (!after || counts.get(finalKey(after)) === 1) return [change];
    if (!before) {
      warnings.push(`The ${titleOf(after)}: others have made one since, which stays`);
      return [];
    }
    if (finalKey(before) === finalKey(after)) return [change];
    warnings.push(
      `The ${titleOf(before)}: others have what it was before, ${titleOf(after)}; it stays where it is`,
    );
    if (after.kind === 'endpoint' && before.kind === 'endpoint')
      return changeTo(change, { ...after, ...placeOf(before), host: before.host, method: before.method });
    return [];
  });
}

/** Leaves out the removal of objects that still contain others. */
function withoutContainers(
  existing: readonly StoredObject[],
  changes: readonly ObjectChange[],
  blocked: Conflict[],
): ObjectChange[] {
  const byId = new Map(changes.map((change) => [change.id, change]));
  const staying = existing.flatMap(({ id, object }) => {
    const change = byId.get(id);
    return change ? (change.after ?? []) : [object];
  });
  staying.push(...changes.flatMap(({ before, after }) => (before || !after ? [] : [after])));
  const needed = new Map<string, Conflict>();
  for (const object of staying)
    for (const { key, title } of containersOf(object))
      if (!needed.has(key))
        needed.set(key, {
          object,
          message: `The ${titleOf(object)} stays, but ${title}, which would be removed`,
        });
  return changes.filter(({ before, after }) => {
    const conflict = !after && before ? needed.get(keyOf(before)) : undefined;
    if (conflict) blocked.push(conflict);
    return !conflict;
  });
}

function changeTo(change: ObjectChange, after: InstallationObject): ObjectChange[] {
  const fields = changedFields(change.before, after);
  return fields.length === 0 ? [] : [{ ...change, after, fields }];
}
