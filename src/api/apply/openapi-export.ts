/**
 * Writes the OpenAPI documents of a host: one for each of its collections, and for each document that was imported. An
 * import of one, in the same place, changes nothing: that is found out as an import does it, and what would change is
 * left out with a warning.
 */
import { Readable } from 'node:stream';
import { AppError, type ErrorCode } from '../../errors.js';
import type { ImportedApi } from '../../import/imported-api.js';
import { VALIDATE_MODES, type ValidateMode } from '../../model/policies/validate.js';
import {
  collectionsOf,
  type DifferingField,
  type DocumentedCollection,
  type DocumentedPart,
  documentedEndpoints,
  importDifferences,
} from '../../store/documented-endpoints.js';
import type { ExistingEndpoint } from '../../store/import-rows.js';
import { documentsOf } from '../../store/imported-documents.js';
import type { JsonObject } from '../../util/json-object.js';
import { jsonInParts, Pauses } from '../../util/pauses.js';
import type { ApiDependencies } from '../api-dependencies.js';
import { basePathIn, type DocumentGroup, pathInDocument, writeDocument } from './openapi-document.js';

type ExportDependencies = Pick<ApiDependencies, 'store' | 'importReader'> & {
  /** Who asks for it: documents are read in turns. */
  readonly owner: string;
};

/** What a document of endpoints without a collection says of their API. */
export type DocumentInfo = DocumentGroup['info'];

/** They say nothing about a document. */
const NOT_READ: ReadonlySet<ErrorCode> = new Set(['too_many_imports', 'busy']);

export interface ExportedDocument {
  readonly collection: { readonly id: string; readonly name: string } | null;
  /** The mode of `validate` with which an import changes nothing, policies included. */
  readonly validate: ValidateMode;
  readonly document: JsonObject;
}

export interface ExportedDocuments {
  readonly documents: readonly ExportedDocument[];
  readonly warnings: readonly string[];
}

/** @param part only these endpoints */
export async function exportedDocuments(
  deps: ExportDependencies,
  host: string,
  { info, part }: { readonly info: DocumentInfo; readonly part?: DocumentedPart },
): Promise<ExportedDocuments> {
  const all = await documentedEndpoints(deps.store, host, part);
  const warnings: string[] = [];
  const enabled = all.filter((endpoint) => {
    if (!endpoint.enabled) warnings.push(leftOut(endpoint, 'it is disabled'));
    return endpoint.enabled;
  });
  const documents: ExportedDocument[] = [];
  for (const collection of [null, ...(await collectionsOf(deps.store, enabled))]) {
    const endpoints = enabled.filter(({ collection_id }) => collection_id === (collection?.id ?? null));
    const own = collection ? { title: collection.name, description: collection.description } : info;
    for (const group of await groupsOf(deps, own, collection, endpoints, warnings)) {
      const exported = await exportedDocument(deps, group, collection, warnings);
      if (exported) documents.push(exported);
    }
  }
  return { documents, warnings };
}

interface OpenGroup extends DocumentGroup {
  readonly endpoints: ExistingEndpoint[];
}

/** Each imported document has its endpoints, and the first one also those that no document has, where they fit. */
async function groupsOf(
  { store }: ExportDependencies,
  info: DocumentInfo,
  collection: DocumentedCollection | null,
  endpoints: readonly ExistingEndpoint[],
  warnings: string[],
): Promise<DocumentGroup[]> {
  const ids = new Set(endpoints.flatMap(({ imported_document_id: id }) => id ?? []));
  const own = collection?.base_path ?? null;
  const groups: OpenGroup[] = [];
  for (const [id, text] of await documentsOf(store, [...ids])) {
    const content = JSON.parse(text) as JsonObject;
    groups.push({ imported: { id, content }, info, basePath: own ?? basePathIn(content), endpoints: [] });
  }
  const others: OpenGroup = { imported: null, info, basePath: own, endpoints: [] };
  const pauses = new Pauses();
  for (const endpoint of endpoints) {
    await pauses.here();
    const imports = groups.find(({ imported }) => imported?.id === endpoint.imported_document_id);
    const fits = [...(imports ? [imports] : []), ...groups, others];
    const group = fits.find((one) => pathInDocument(endpoint, one) !== undefined);
    if (group) group.endpoints.push(endpoint);
    else warnings.push(leftOut(endpoint, 'a document cannot have such a path'));
  }
  return [...groups, others].filter((group) => group.endpoints.length > 0);
}

/** Leaves out what an import would change, until nothing is left that it would. */
async function exportedDocument(
  deps: ExportDependencies,
  group: DocumentGroup,
  collection: DocumentedCollection | null,
  warnings: string[],
): Promise<ExportedDocument | undefined> {
  const target = { basePath: group.basePath, collection };
  const shown = collection && { id: collection.id, name: collection.name };
  let validate = commonMode(group.endpoints);
  let { endpoints } = group;
  while (endpoints.length > 0) {
    const document = await writeDocument({ ...group, endpoints });
    const api = await readAgain(deps, document, validate, warnings);
    if (!api) return { collection: shown, validate, document };
    const { changed, missing } = await importDifferences(api, endpoints, target);
    const lost = new Map(missing.map((endpoint) => [endpoint, 'an import does not read it']));
    for (const { endpoint, fields } of changed)
      if (fields.some((field) => field !== 'validate')) lost.set(endpoint, reasonOf(fields));
    for (const [endpoint, reason] of lost) warnings.push(leftOut(endpoint, reason));
    const validated = changed.filter(({ endpoint }) => !lost.has(endpoint));
    if (validated.length > 0) {
      const names = validated.slice(0, 5).map(({ endpoint: { name } }) => `"${name}"`);
      const more = validated.length > names.length ? ` and ${validated.length - names.length} more` : '';
      warnings.push(
        `The policy validate of ${names.join(', ')}${more} is not what a document can say: import without validate, which keeps it`,
      );
      validate = 'off';
    }
    if (lost.size === 0) return { collection: shown, validate, document };
    endpoints = endpoints.filter((endpoint) => !lost.has(endpoint));
  }
  return undefined;
}

/** What an import reads of a document; undefined, with a warning, when it cannot. */
async function readAgain(
  { importReader, owner }: ExportDependencies,
  document: JsonObject,
  validate: ValidateMode,
  warnings: string[],
): Promise<ImportedApi | undefined> {
  const spec = (await jsonInParts(document)).toString();
  const body = Readable.from([await jsonInParts({ spec })]);
  try {
    return await importReader.readRequest(owner, body, async ({ api }) => api, validate);
  } catch (thrown) {
    if (!(thrown instanceof AppError) || NOT_READ.has(thrown.code)) throw thrown;
    warnings.push(`A document that was written could not be read again: ${thrown.message}`);
    return undefined;
  }
}

/** The mode that the policies of all endpoints have that are validated. */
function commonMode(endpoints: readonly ExistingEndpoint[]): ValidateMode {
  const modes = new Set(endpoints.flatMap(({ policies }) => policies?.validate?.mode ?? []));
  const [mode] = modes;
  return (modes.size === 1 && VALIDATE_MODES.find((one) => one === mode)) || 'off';
}

function reasonOf(fields: readonly DifferingField[]): string {
  const named = fields.filter((field) => field !== 'validate');
  return `an import would change its ${named.join(' and its ')}`;
}

function leftOut({ method, route }: ExistingEndpoint, reason: string): string {
  return `${method} ${route} is left out: ${reason}`;
}
