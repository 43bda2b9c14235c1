/**
 * The changes that make an installation what a folder says: which objects are created, changed and removed, and what
 * stands against it. Pure.
 */
import { joinRoute, RouteSyntaxError } from '../model/route-pattern.js';
import { mapInParts, Pauses } from '../util/pauses.js';
import { changedFields } from './compare.js';
import {
  collectionKey,
  domainKey,
  endpointKey,
  keyOf,
  type ObjectKind,
  serviceKey,
  titleOf,
} from './keys.js';
import type { CollectionObject, EndpointObject, InstallationObject, ObjectChange } from './objects.js';

/** An object of the installation. */
export interface StoredObject<T = InstallationObject> {
  /** The id of its row. */
  readonly id: string;
  readonly object: T;
}

/** An object as a folder declares it. */
export interface DeclaredObject<T extends InstallationObject = InstallationObject> {
  /** Where it stands, for messages: `edge.yaml:12`. */
  readonly place: string;
  readonly object: T;
  /** Whether the stack of the folder is to own it. Otherwise it is only made where it is missing. */
  readonly isClaimed: boolean;
}

export interface ChangeOptions {
  readonly stack: string;
  /** Whether objects of the stack that the folder does not have are removed. */
  readonly prune: boolean;
  /** Whether objects of the folder that nobody owns become the stack's. */
  readonly adopt: boolean;
  /** Whether an object is removed that the folder does not have. */
  mayRemove(object: InstallationObject): boolean;
}

/** What stands against a change: it belongs to somebody else. */
export interface Conflict {
  readonly object: InstallationObject;
  readonly message: string;
}

export interface PlannedChanges {
  /** Changes in the order in which they are to be written. */
  readonly changes: readonly ObjectChange[];
  readonly conflicts: readonly Conflict[];
  /** What is wrong with the folder, each with its place. */
  readonly problems: readonly string[];
  /** Objects of the stack that the folder does not have, and that stay. */
  readonly kept: readonly InstallationObject[];
}

const ORDER: readonly ObjectKind[] = ['service', 'domain', 'collection', 'endpoint'];

/**
 * @param existing all objects that the folder may concern
 * @param declared no two with the same key
 */
export async function plannedChanges(
  existing: readonly StoredObject[],
  declared: readonly DeclaredObject[],
  options: ChangeOptions,
): Promise<PlannedChanges> {
  const conflicts: Conflict[] = [];
  const problems: string[] = [];
  const written: ObjectChange[] = [];
  const basePaths = newBasePaths(declared);
  const byKey = new Map<string, StoredObject[]>();
  const pauses = new Pauses();
  for (const one of existing) {
    await pauses.here();
    const key = keyAfterMove(one, basePaths);
    if (key instanceof RouteSyntaxError) {
      problems.push(
        `The base path of its collection makes a route of the ${titleOf(one.object)} that ${key.message}`,
      );
    } else byKey.set(key, [...(byKey.get(key) ?? []), one]);
  }
  const matched = new Set<string>();
  for (const { object, isClaimed, place } of declared) {
    await pauses.here();
    const key = keyOf(object);
    const before = closestMatch(byKey.get(key) ?? [], object);
    if (before) matched.add(before.id);
    const decided = decide(before, object, isClaimed, options);
    if ('conflict' in decided) {
      conflicts.push({
        object,
        message: `${place}: the ${titleOf(object)} ${decided.conflict}`,
      });
    } else if (decided.change) written.push(decided.change);
  }
  const others = existing.filter(({ id }) => !matched.has(id));
  const removed = options.prune
    ? others.filter(({ object }) => object.stack === options.stack && options.mayRemove(object))
    : [];
  const removedIds = new Set(removed.map(({ id }) => id));
  const staying = others.filter(({ id }) => !removedIds.has(id));
  for (const same of byKey.values()) {
    const [first, second] = same.filter(({ id }) => !removedIds.has(id));
    if (first && second)
      problems.push(`The ${titleOf(second.object)} would get the route of the ${titleOf(first.object)}`);
  }
  for (const one of staying) {
    await pauses.here();
    const moved = movedWithCollection(one, basePaths);
    if (!moved) continue;
    const decided = decide(one, moved, false, options);
    if ('conflict' in decided)
      conflicts.push({
        object: one.object,
        message: `The ${titleOf(one.object)}, which would move with the base path of its collection, ${decided.conflict}`,
      });
    else if (decided.change) written.push(decided.change);
  }
  conflicts.push(
    ...inTheWayOfRemoval(removed, [
      ...staying.map(({ object }) => object),
      ...declared.map(({ object }) => object),
    ]),
  );
  return {
    changes: [
      ...(await inWritingOrder(written)),
      ...(await inWritingOrder(removed.map(removalOf))).reverse(),
    ],
    conflicts,
    problems,
    kept: staying.flatMap(({ object }) => (object.stack === options.stack ? [object] : [])),
  };
}

/**
 * The existing object that a declared one is. Where several have its key, because collections move, it is the one in
 * the collection that the folder names.
 */
function closestMatch(
  candidates: readonly StoredObject[],
  declared: InstallationObject,
): StoredObject | undefined {
  const isAlike = ({ object }: StoredObject) =>
    object.kind === 'endpoint' && declared.kind === 'endpoint' && object.collection === declared.collection;
  return candidates.find(isAlike) ?? candidates[0];
}

/** What becomes of one object: a change, none, or a conflict. */
function decide(
  before: StoredObject | undefined,
  given: InstallationObject,
  isClaimed: boolean,
  { stack, adopt }: ChangeOptions,
): { readonly change: ObjectChange | null } | { readonly conflict: string } {
  const declared = withRunning(given, before?.object);
  if (!before) {
    const fields = changedFields(null, declared);
    return { change: { action: 'create', id: null, before: null, after: declared, fields } };
  }
  const owner = before.object.stack;
  const isAdopted = owner === null && adopt;
  if (isClaimed && owner !== stack && !isAdopted) return { conflict: belongsTo(owner) };
  const after = { ...declared, stack: isClaimed || isAdopted ? stack : owner } as InstallationObject;
  const fields = changedFields(before.object, after);
  if (fields.length === 0) return { change: null };
  if (owner !== stack && !isAdopted)
    return { conflict: `is not as the folder says, and ${belongsTo(owner)}` };
  return { change: { action: 'update', id: before.id, before: before.object, after, fields } };
}

/** `other` says that what serves stays. */
function withRunning(object: InstallationObject, before: InstallationObject | undefined): InstallationObject {
  if (object.kind !== 'endpoint' || object.running !== 'other') return object;
  return { ...object, running: before?.kind === 'endpoint' ? before.running : false };
}

function belongsTo(owner: string | null): string {
  return owner === null
    ? "exists, and belongs to no stack; adopt=true makes it this one's"
    : `belongs to the stack "${owner}"`;
}

function removalOf({ id, object }: StoredObject): ObjectChange {
  return { action: 'delete', id, before: object, after: null, fields: [] };
}

/** What contains others is removed with all of it. */
function inTheWayOfRemoval(
  removed: readonly StoredObject[],
  staying: readonly InstallationObject[],
): Conflict[] {
  const keys = new Set(removed.map(({ object }) => keyOf(object)));
  if (keys.size === 0) return [];
  return staying.flatMap((object) => {
    const container = containersOf(object).find(({ key }) => keys.has(key));
    if (!container) return [];
    const message = `The ${titleOf(object)} stays, but ${container.title}, which would be removed`;
    return [{ object, message }];
  });
}

/** What an object cannot be without, and what would end with it. */
export function containersOf(object: InstallationObject): { readonly key: string; readonly title: string }[] {
  if (object.kind === 'domain' || object.kind === 'service') return [];
  const domain = (host: string) => ({ key: domainKey(host), title: `is in the domain "${host}"` });
  if (object.kind === 'collection') return [domain(object.host)];
  const { collection, collection_host, bindings } = object;
  return [
    domain(object.host),
    ...(collection !== null && collection_host !== null
      ? [
          {
            key: collectionKey(collection_host, collection),
            title: `is in the collection "${collection_host}/${collection}"`,
          },
          domain(collection_host),
        ]
      : []),
    ...Object.values(bindings).map((name) => ({
      key: serviceKey(name),
      title: `has the service "${name}" bound`,
    })),
  ];
}

/** Base paths that collections are to have, by their keys. */
function newBasePaths(
  declared: readonly DeclaredObject[],
): ReadonlyMap<string, CollectionObject['base_path']> {
  return new Map(
    declared.flatMap(({ object }) =>
      object.kind === 'collection' ? [[keyOf(object), object.base_path] as const] : [],
    ),
  );
}

/** The key of an object once collections have their new base paths. */
function keyAfterMove(
  { object }: StoredObject,
  basePaths: ReadonlyMap<string, string | null>,
): string | RouteSyntaxError {
  if (object.kind !== 'endpoint') return keyOf(object);
  try {
    return endpointKey(object.host, object.method, routeAfterMove(object, basePaths));
  } catch (thrown) {
    if (thrown instanceof RouteSyntaxError) return thrown;
    throw thrown;
  }
}

function routeAfterMove(endpoint: EndpointObject, basePaths: ReadonlyMap<string, string | null>): string {
  const { collection, collection_host, route, path } = endpoint;
  if (collection === null || collection_host === null) return route;
  const basePath = basePaths.get(collectionKey(collection_host, collection));
  return basePath === undefined ? route : joinRoute(basePath, path);
}

/** An endpoint that the folder does not have, where its collection gets another base path. */
function movedWithCollection(
  { object }: StoredObject,
  basePaths: ReadonlyMap<string, string | null>,
): EndpointObject | undefined {
  if (object.kind !== 'endpoint') return undefined;
  try {
    const route = routeAfterMove(object, basePaths);
    return route === object.route ? undefined : { ...object, route };
  } catch (thrown) {
    // It is among the problems already.
    if (thrown instanceof RouteSyntaxError) return undefined;
    throw thrown;
  }
}

async function inWritingOrder(changes: readonly ObjectChange[]): Promise<ObjectChange[]> {
  const rank = ({ before, after }: ObjectChange) => {
    const object = (after ?? before) as InstallationObject;
    return { kind: ORDER.indexOf(object.kind), key: keyOf(object) };
  };
  const ranked = await mapInParts(changes, (change) => ({ change, ...rank(change) }));
  return ranked
    .sort((left, right) => left.kind - right.kind || (left.key < right.key ? -1 : 1))
    .map(({ change }) => change);
}
