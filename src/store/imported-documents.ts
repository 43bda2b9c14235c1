/** Documents as imports have read them: a row for each that an endpoint of its domain is of. */
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { KeptDocument } from '../model/imported-parts.js';
import type { Store } from './database.js';

/**
 * Keeps the document of an import, within its transaction.
 * @returns its id: the same one for the same document
 */
export async function keepDocument(
  tx: Store,
  domain: string,
  { sha256, gzip }: KeptDocument,
): Promise<string> {
  // A document that is there already is not sent again; with a new time, nobody forgets it meanwhile.
  const known = await tx
    .knex('imported_documents')
    .where({ domain, sha256 })
    .update({ imported_at: tx.knex.fn.now() }, ['id']);
  const id = known[0]?.id ?? randomUUID();
  if (known.length === 0) await tx.knex('imported_documents').insert({ id, domain, sha256, gzip });
  return id;
}

/** Forgets documents of a domain that no endpoint is of any more. Imports of the domain come one after the other. */
export async function dropUnusedDocuments(tx: Store, domain: string): Promise<void> {
  await tx.knex('imported_documents').where({ domain }).whereRaw(UNUSED).delete();
}

/** Forgets those whose endpoints were deleted. @param olderThanMs longer than a transaction that imports */
export async function pruneDocuments(store: Store, olderThanMs: number): Promise<number> {
  return store
    .knex('imported_documents')
    .whereRaw("imported_at < clock_timestamp() - ? * interval '1 millisecond'", [olderThanMs])
    .whereRaw(UNUSED)
    .delete();
}

const UNUSED = 'NOT EXISTS (SELECT FROM endpoints WHERE imported_document_id = imported_documents.id)';

/** The texts of documents by their ids, the oldest first. */
export async function documentsOf(
  store: Store,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await store
    .knex<{ id: string; gzip: Buffer }>('imported_documents')
    .whereIn('id', ids)
    .orderBy(['imported_at', 'id'])
    .select('id', 'gzip');
  return new Map(
    await Promise.all(rows.map(async ({ id, gzip }) => [id, String(await promisify(gunzip)(gzip))] as const)),
  );
}
