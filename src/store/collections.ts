/** The table `collections`: groups of endpoints within a domain, with a path prefix and a switch. */

import { randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../errors.js';
import type { Scope } from '../model/permission.js';
import type { Policies } from '../model/policies/policies.js';
import { joinRoute, RouteSyntaxError, routeKey } from '../model/route-pattern.js';
import { nextUpdatedAt, type Store, transaction, violatedForeignKey } from './database.js';
import { columnValues, insertInto } from './insert.js';
import { namingOwner, type UniqueWrite } from './naming-owner.js';
import {
  deleteEndpoints,
  lockEndpointsOfCollection,
  namingRouteOwner,
  type RouteClaim,
  touchEndpoints,
} from './routed-endpoints.js';
import { visible } from './visibility.js';

/** A row. */
export interface Collection {
  readonly id: string;
  readonly domain_id: string;
  readonly name: string;
  readonly description: string | null;
  /** The base path, with a leading and without a trailing slash; null when there is none. */
  readonly base_path: string | null;
  readonly policies: Policies | null;
  readonly enabled: boolean;
  /** The stack of files that it belongs to; null: none. */
  readonly stack: string | null;
  readonly created_at: Date;
  readonly updated_at: Date;
}

/** The columns that a user sets. */
const USER_COLUMNS = ['domain_id', 'name', 'description', 'base_path', 'policies', 'enabled'] as const;
export type NewCollection = Pick<Collection, Exclude<(typeof USER_COLUMNS)[number], 'policies'>> &
  Partial<Pick<Collection, 'policies' | 'stack'>>;
export type CollectionChanges = Partial<Omit<NewCollection, 'domain_id' | 'stack'>>;

const insertCollection = insertInto<NewCollection & Pick<Collection, 'id'>, Collection>('collections', [
  'id',
  ...USER_COLUMNS,
  'stack',
]);

export async function listCollections(
  store: Store,
  filter: { readonly domain_id?: string } = {},
  scope?: Scope,
): Promise<Collection[]> {
  const query = store.knex<Collection>('collections').where(filter).orderBy(['created_at', 'id']);
  return visible(query, 'collection', scope);
}

/** The bytes of policies that a list would have in memory. */
export async function policyBytesOfCollections(
  { knex }: Store,
  filter: { readonly domain_id?: string } = {},
  scope?: Scope,
): Promise<number> {
  const query = knex('collections').where(filter);
  const [row] = await visible(query, 'collection', scope).select(
    knex.raw('coalesce(sum(octet_length(collections.policies::text)), 0)::bigint AS bytes'),
  );
  return (row as { bytes: number }).bytes;
}

export async function findCollection(store: Store, id: string): Promise<Collection | undefined> {
  return store.knex<Collection>('collections').where({ id }).first();
}

/** @throws AppError not_found when there is no such domain, name_taken */
export async function createCollection(
  store: Store,
  collection: NewCollection,
  id: string = randomUUID(),
): Promise<Collection> {
  try {
    return await namingNameOwner(
      store,
      () => collection,
      () => insertCollection(store, { ...collection, id }),
    );
  } catch (thrown) {
    if (violatedForeignKey(thrown) !== 'collections_domain_id_foreign') throw thrown;
    throw new AppError(
      'not_found',
      `The domain ${collection.domain_id} does not exist`,
      {},
      { cause: thrown },
    );
  }
}

/**
 * Changes the given fields. A new base path moves the endpoints.
 * @returns undefined when there is no such collection
 * @throws AppError name_taken, route_taken, or invalid_input when the base path does not fit the path of an endpoint
 */
export async function updateCollection(
  store: Store,
  id: string,
  changes: CollectionChanges,
): Promise<Collection | undefined> {
  let claims: readonly RouteClaim[] = [];
  let place: Pick<Collection, 'domain_id' | 'name'> = { domain_id: '', name: '' };
  const update = () =>
    transaction(store, async (tx) => {
      const before = await tx.knex<Collection>('collections').where({ id }).forUpdate().first();
      if (!before || Object.keys(changes).length === 0) return before;
      place = { ...before, ...changes };
      const [after] = await tx
        .knex<Collection>('collections')
        .where({ id })
        .update({ ...columnValues(changes), updated_at: nextUpdatedAt(tx) })
        .returning('*');
      if (!after) return undefined;
      const hasNewPolicies = !isDeepStrictEqual(after.policies, before.policies);
      if (after.base_path !== before.base_path) {
        claims = await movedRoutes(tx, after);
        await moveEndpoints(tx, claims);
      } else if (after.enabled !== before.enabled || hasNewPolicies) {
        await touchEndpoints(tx, await lockEndpointsOfCollection(tx, id));
      }
      return after;
    });
  return namingRouteOwner(store, { claims: () => claims }, () => namingNameOwner(store, () => place, update));
}

/** @param place domain and name of what is written */
function namingNameOwner<T>(
  store: Store,
  place: () => Pick<Collection, 'domain_id' | 'name'>,
  write: () => Promise<T>,
): Promise<T> {
  const unique: UniqueWrite<Pick<Collection, 'id'>> = {
    constraint: 'collections_name_unique',
    owner: () => {
      const { domain_id, name } = place();
      return store.knex<Collection>('collections').where({ domain_id, name }).first('id');
    },
    error: (owner) => ({
      code: 'name_taken',
      message: `The name "${place().name}" is taken by ${owner ? `the collection ${owner.id}` : 'another collection'} of the domain`,
      ...(owner && { details: { collection_id: owner.id } }),
    }),
  };
  return namingOwner(unique, write);
}

/**
 * Deletes a collection and its endpoints.
 * @returns false when there is no such collection
 */
export async function deleteCollection(store: Store, id: string): Promise<boolean> {
  return transaction(store, async (tx) => {
    // Locked, so that no endpoint is added before the deletion.
    const collection = await tx.knex('collections').where({ id }).forUpdate().first('id');
    if (!collection) return false;
    await deleteEndpoints(tx, await lockEndpointsOfCollection(tx, id));
    await tx.knex('collections').where({ id }).delete();
    return true;
  });
}

/** The new routes of the endpoints after a change of the base path. */
async function movedRoutes(tx: Store, { id, base_path }: Collection): Promise<RouteClaim[]> {
  const endpoints = await tx
    .knex('endpoints')
    .where({ collection_id: id })
    .orderBy('id')
    .forUpdate()
    .select<{ id: string; name: string; domain: string; method: string; path: string }[]>(
      'id',
      'name',
      'domain',
      'method',
      'path',
    );
  return endpoints.map((endpoint) => {
    try {
      const route = joinRoute(base_path, endpoint.path);
      return { ...endpoint, route, route_key: routeKey(route) };
    } catch (thrown) {
      if (!(thrown instanceof RouteSyntaxError)) throw thrown;
      throw new AppError(
        'invalid_input',
        `body.base_path: makes a route that ${thrown.message} with the path ${endpoint.path} of the endpoint "${endpoint.name}" (${endpoint.id})`,
        {},
        { cause: thrown },
      );
    }
  });
}

async function moveEndpoints(tx: Store, claims: readonly RouteClaim[]): Promise<void> {
  await tx.knex.raw(
    `UPDATE endpoints SET route = moved.route, route_key = moved.route_key, version = version + 1
       FROM unnest(?::uuid[], ?::text[], ?::text[]) AS moved (id, route, route_key)
      WHERE endpoints.id = moved.id`,
    [
      claims.flatMap(({ id }) => id ?? []),
      claims.map(({ route }) => route),
      claims.map(({ route_key }) => route_key),
    ],
  );
  for (const { id } of claims) if (id !== null) tx.announce('endpoint', id);
}
