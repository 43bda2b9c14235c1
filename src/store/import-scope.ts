/** The domain and, optionally, the collection of an import; locked until the commit. */
import { AppError } from '../errors.js';
import { type Collection, createCollection } from './collections.js';
import type { Store } from './database.js';

/** How long an import waits for each lock, milliseconds: meanwhile it holds a connection of the pool. */
const LOCK_WAIT_MS = 10_000;

/** The requested target of an import. */
export interface ImportTarget {
  /** A hostname in lower case, or `*`. */
  readonly domain: string;
  readonly domainId: string | null;
  readonly collectionId: string | null;
  /** Use the collection of the domain with the title of the API, and create it if there is none; needs `domainId`. */
  readonly createCollection: boolean;
}

/** The resolved target of an import. */
export interface ImportScope {
  readonly domain: string;
  readonly collection: Collection | null;
  /** This import has made it. */
  readonly isNewCollection: boolean;
  /** The prefix of all routes. */
  readonly basePath: string | null;
  readonly warnings: readonly string[];
}

/**
 * Finds the collection, or creates it.
 * @throws AppError not_found, domain_mismatch, invalid_input
 */
export async function openScope(
  tx: Store,
  target: ImportTarget,
  api: { readonly title: string; readonly description: string | null; readonly basePath: string | null },
): Promise<ImportScope> {
  // Until the end of the transaction.
  await tx.knex.raw("SELECT set_config('lock_timeout', ?, true)", [String(LOCK_WAIT_MS)]);
  // One import of a domain at a time, so that the second finds the rows of the first. Locked before any row.
  await tx.knex.raw("SELECT pg_advisory_xact_lock(hashtextextended('import ' || ?, 0))", [target.domain]);
  const { collection, isNew } = await collectionOf(tx, target, api);
  return {
    domain: target.domain,
    collection,
    isNewCollection: isNew,
    basePath: collection?.base_path ?? api.basePath,
    warnings: collection ? basePathWarnings(collection, api.basePath) : [],
  };
}

async function collectionOf(
  tx: Store,
  target: ImportTarget,
  api: { readonly title: string; readonly description: string | null; readonly basePath: string | null },
): Promise<{ readonly collection: Collection | null; readonly isNew: boolean }> {
  const { domain, domainId, collectionId, createCollection: create } = target;
  if (domainId !== null) await lockDomain(tx, domain, domainId, create);
  if (collectionId !== null) {
    return { collection: await lockCollection(tx, domain, domainId, collectionId), isNew: false };
  }
  if (!create || domainId === null) return { collection: null, isNew: false };
  const existing = await tx
    .knex<Collection>('collections')
    .where({ domain_id: domainId, name: api.title })
    .orderBy(['created_at', 'id'])
    .forShare()
    .first();
  if (existing) return { collection: existing, isNew: false };
  const collection = await createCollection(tx, {
    domain_id: domainId,
    name: api.title,
    description: api.description,
    base_path: api.basePath,
    enabled: true,
  });
  return { collection, isNew: true };
}

/**
 * @param exclusively blocks other imports that would create the same collection: imports into one domain come under its
 *   host and under `*`
 */
async function lockDomain(tx: Store, domain: string, id: string, exclusively: boolean): Promise<void> {
  const row = tx.knex('domains').where({ id });
  const locked = exclusively ? row.forNoKeyUpdate() : row.forShare();
  const existing = await locked.first<{ host: string } | undefined>('host');
  if (!existing) throw new AppError('not_found', `The domain ${id} does not exist`);
  if (domain !== '*' && domain !== existing.host) {
    throw new AppError(
      'domain_mismatch',
      `\`domain\` is "${domain}", but the domain ${id} has the host "${existing.host}"; they must be the same, or \`domain\` "*"`,
    );
  }
}

async function lockCollection(
  tx: Store,
  domain: string,
  domainId: string | null,
  id: string,
): Promise<Collection> {
  // The domain first, as in every change.
  const parent = await tx
    .knex('domains')
    .whereIn('id', tx.knex('collections').select('domain_id').where({ id }))
    .forShare()
    .first<{ id: string; host: string } | undefined>('id', 'host');
  const collection = await tx.knex<Collection>('collections').where({ id }).forShare().first();
  if (!parent || !collection) throw new AppError('not_found', `The collection ${id} does not exist`);
  if (domainId !== null && domainId !== parent.id) {
    throw new AppError(
      'invalid_input',
      `collection_id: the collection "${collection.name}" (${id}) belongs to the domain ${parent.id} ("${parent.host}"), not to the domain_id ${domainId}`,
    );
  }
  if (domain !== '*' && domain !== parent.host) {
    throw new AppError(
      'domain_mismatch',
      `\`domain\` is "${domain}", but the collection "${collection.name}" (${id}) belongs to "${parent.host}"; they must be the same, or \`domain\` "*"`,
    );
  }
  return collection;
}

function basePathWarnings({ id, name, base_path }: Collection, basePath: string | null): string[] {
  if (base_path === null || base_path === basePath) return [];
  const theirs = basePath === null ? 'has none' : `has ${basePath}`;
  return [
    `The collection "${name}" keeps its base path ${base_path}, although the document ${theirs}; PUT /api/collections/${id} with another base_path changes it`,
  ];
}
