/** Bundles for tests of reading them. */
import { readBundle } from '../../../src/import/bundle/read-bundle.js';
import type { ImportedApi } from '../../../src/import/imported-api.js';
import type { ImportLimits } from '../../../src/import/limits.js';
import { type ZipFolder, zipOf } from '../../support/zip.js';
import { withTexts } from '../documents/documents.js';

export type Files = Record<string, string | Uint8Array>;

export const LIMITS: ImportLimits = {
  entries: 1000,
  unpackedBytes: 10_000_000,
  specBytes: 1_000_000,
  operations: 100,
  codeBytes: 100_000,
  sourceFiles: 1_000,
};

/** A document with these operations: `METHOD /path` and operationId. */
export function spec(
  operations: Record<string, string | null>,
  { title = 'Pets', server = '/' } = {},
): string {
  const paths: Record<string, Record<string, object>> = {};
  for (const [route, operationId] of Object.entries(operations)) {
    const [method = '', path = ''] = route.split(' ');
    const parameters = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
    }));
    paths[path] = {
      ...paths[path],
      [method.toLowerCase()]: {
        ...(operationId === null ? {} : { operationId }),
        parameters,
        responses: { 200: { description: 'Fine' } },
      },
    };
  }
  return JSON.stringify({
    openapi: '3.0.3',
    info: { title, version: '1', description: `All of ${title}` },
    servers: [{ url: server }],
    paths,
  });
}

export const PETS = spec({ 'GET /pets': 'listPets', 'GET /pets/{id}': 'getPet' });

export async function readFiles(zips: ZipFolder, files: Files, limits: Partial<ImportLimits> = {}) {
  return withTexts(await readBundle(await zips.write(zipOf(files)), { ...LIMITS, ...limits }));
}

/** The files of the handlers by endpoint name. */
export function handlers({ endpoints }: Pick<ImportedApi, 'endpoints'>): Record<string, string | null> {
  return Object.fromEntries(endpoints.map(({ name, handler }) => [name, handler?.file ?? null]));
}
