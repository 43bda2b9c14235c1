/** Stores imports as the API does, for tests that need no document. */
import { randomUUID } from 'node:crypto';
import { policyLimit } from '../../src/model/policies/room.js';
import { applyImport, type ImportToApply } from '../../src/store/apply-import.js';
import type { Store } from '../../src/store/database.js';
import type { ImportTarget } from '../../src/store/import-scope.js';
import type { ImportOutcome } from '../../src/store/imports.js';

const CONFIG = { POLICIES_OF_DOMAIN_MB: 64 };

/** What an import of nothing has. */
export const EMPTY_API: ImportToApply = {
  kind: 'document',
  title: 'Pets',
  description: null,
  basePath: null,
  endpoints: [],
  dependencies: null,
  bindings: [],
  warnings: [],
  document: null,
  problems: [],
};

/** @param compile makes rows of its handlers, for workers */
export async function storeImport(
  store: Store,
  target: ImportTarget,
  api: ImportToApply,
  { id = randomUUID(), compile = false }: { readonly id?: string; readonly compile?: boolean } = {},
): Promise<ImportOutcome> {
  const record = { id, compile, start: false, request_id: 'request', principal: null };
  return (await applyImport(store, target, api, record, policyLimit(CONFIG))).outcome;
}
