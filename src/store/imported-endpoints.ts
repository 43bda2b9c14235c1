/**
 * Writes the endpoints of an import: updates those whose route exists in the same domain and collection, and creates
 * the others. Many rows in each statement; between two statements, the event loop runs other tasks.
 */
import { createHash, randomUUID } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { AppError } from '../errors.js';
import type { Dependencies } from '../model/crates.js';
import type { EndpointMethod } from '../model/endpoint-method.js';
import type { ImportedEndpoint, ImportedHandler, KeptDocument } from '../model/imported-parts.js';
import type { Policies } from '../model/policies/policies.js';
import { enforceSame } from '../model/policies/same-validation.js';
import type { ValidateMode, ValidatePolicy } from '../model/policies/validate.js';
import { joinRoute, RouteSyntaxError, routeBelow, routeKey } from '../model/route-pattern.js';
import { type Edition, normalEdition, ONE_FILE, type SourceFiles } from '../model/source-files.js';
import { sourceKey } from '../model/source-key.js';
import type { Store } from './database.js';
import type { EndpointStatus } from './endpoints.js';
import {
  type ExistingEndpoint,
  existingEndpoints,
  insertEndpoints,
  lockRoutes,
  updateEndpoints,
} from './import-rows.js';
import type { ImportScope } from './import-scope.js';
import { dropUnusedDocuments, keepDocument } from './imported-documents.js';
import type { RouteClaim } from './routed-endpoints.js';

/** An API to store. Validated: no two of its endpoints have the same route. */
export interface ApiToImport {
  readonly title: string;
  readonly description: string | null;
  readonly basePath: string | null;
  readonly endpoints: readonly ImportedEndpoint[];
  /** Dependencies of all handlers, `{}` for none; null keeps those of existing endpoints. */
  readonly dependencies: Dependencies | null;
  /** The edition of all handlers; undefined keeps that of existing endpoints. */
  readonly edition?: Edition;
  /** The document itself, for exports. */
  readonly document: KeptDocument | null;
  /** Whether requests are to be validated; unless it is said, endpoints keep the policies that they have. */
  readonly validation?: ValidateMode;
}

/** An endpoint of an import. */
export interface ImportedRow {
  readonly id: string;
  readonly name: string;
  readonly path: string;
  readonly method: EndpointMethod;
  readonly status: EndpointStatus;
  /** File of its handler in the bundle. */
  readonly handler: string | null;
  /** What the import has done to it; it may be as before already. */
  readonly change: 'created' | 'updated' | 'unchanged';
  /** Where its code is from: the bundle, generated from the document, or kept, because a user wrote it. */
  readonly code: 'handler' | 'generated' | 'kept';
}

/** An endpoint without a handler in the import. */
export interface UnhandledEndpoint {
  readonly name: string;
  /** True when it has code that a user wrote, or an earlier import contained; otherwise it has generated code. */
  readonly keepsCode: boolean;
}

/** Code that did not come from an import, and the handler that replaced it. */
export interface ReplacedCode {
  readonly name: string;
  readonly file: string;
}

export interface ImportedRows {
  readonly created: number;
  readonly updated: number;
  /** Endpoints in the order of the import. */
  readonly endpoints: readonly ImportedRow[];
  readonly unhandled: readonly UnhandledEndpoint[];
  readonly replaced: readonly ReplacedCode[];
  /** Titles of the APIs in the last imports of the updated endpoints. */
  readonly formerTitles: readonly string[];
}

/** What routes depend on. */
export interface PlaceOfImport extends Pick<ImportScope, 'basePath'> {
  readonly collection: { readonly base_path: string | null } | null;
}

/** An endpoint and its new route. */
interface RoutedImport {
  readonly endpoint: ImportedEndpoint;
  /** The stored path: relative to the base path of the collection. */
  readonly path: string;
  readonly route: string;
  readonly route_key: string;
}

/**
 * Limits of rows and of characters of code in one statement, so that building it does not block the event loop for
 * long.
 */
const CHUNK_ROWS = 100;
const CHUNK_CODE = 512 * 1024;

/**
 * @param claim called with the routes about to be written, for the error when one is taken
 * @throws AppError route_taken, invalid_spec when a route cannot have the base path
 */
export async function writeEndpoints(
  tx: Store,
  scope: ImportScope,
  api: ApiToImport,
  claim: (claims: readonly RouteClaim[]) => void,
): Promise<ImportedRows> {
  const documentId = api.document === null ? null : await keepDocument(tx, scope.domain, api.document);
  const rows: ImportedRow[] = [];
  const unhandled: UnhandledEndpoint[] = [];
  const replaced: ReplacedCode[] = [];
  let created = 0;
  const placed: RoutedImport[] = [];
  for (const chunk of chunks(api.endpoints, (endpoint) => endpoint)) {
    placed.push(...chunk.map((endpoint) => place(endpoint, scope)));
    await nextTurn();
  }
  // All existing endpoints are locked, in the order of their ids, before any is written.
  const locked = await lockRoutes(tx, scope.domain, placed);
  const existing = new Map<string, ExistingEndpoint>();
  for (let at = 0; at < locked.length; at += CHUNK_ROWS) {
    for (const owner of await existingEndpoints(tx, locked.slice(at, at + CHUNK_ROWS))) {
      requireSameScope(owner, scope);
      existing.set(`${owner.method} ${owner.route_key}`, owner);
    }
  }

  for (const chunk of chunks(placed, ({ endpoint }) => endpoint)) {
    claim(
      chunk.map(({ endpoint: { method }, route, route_key }) => ({
        id: existing.get(`${method} ${route_key}`)?.id ?? null,
        domain: scope.domain,
        method,
        route,
        route_key,
      })),
    );
    const additions = [];
    const changes = [];
    for (const item of chunk) {
      const before = existing.get(`${item.endpoint.method} ${item.route_key}`);
      const changed = before && changeOf(before, item, api, documentId);
      const change = !before ? 'created' : changed?.is_visible ? 'updated' : 'unchanged';
      if (changed) changes.push(changed);
      if (!before) additions.push(additionOf(item, scope, api, documentId));
      const { name, handler } = item.endpoint;
      const keepsCode = !handler && before !== undefined && hasOwnCode(before);
      rows.push({
        ...rowOf(item, before ?? additions.at(-1)),
        change,
        code: handler ? 'handler' : keepsCode ? 'kept' : 'generated',
      });
      if (!handler) unhandled.push({ name, keepsCode });
      else if (before && replacesOwnCode(before, handler)) replaced.push({ name, file: handler.file });
    }
    created += additions.length;
    await insertEndpoints(tx, additions);
    await updateEndpoints(tx, changes);
    for (const { id } of additions) tx.announce('endpoint', id);
    for (const { id, rerouted } of changes) if (rerouted) tx.announce('endpoint', id);
    // Without rows there is nothing to wait for.
    await nextTurn();
  }
  await dropUnusedDocuments(tx, scope.domain);
  const formerTitles = new Set([...existing.values()].flatMap(({ imported_from }) => imported_from ?? []));
  return {
    created,
    updated: rows.length - created,
    endpoints: rows,
    unhandled,
    replaced,
    formerTitles: [...formerTitles],
  };
}

/**
 * Computes the path and route of an endpoint. A path of the document that begins like the base path is stored as its
 * whole route, because the API would take such a path of a collection for the route.
 */
export function place(endpoint: ImportedEndpoint, { basePath, collection }: PlaceOfImport): RoutedImport {
  try {
    const route = routeBelow(basePath, endpoint.path);
    const own = collection?.base_path ?? null;
    const path = own === basePath && joinRoute(own, endpoint.path) === route ? endpoint.path : route;
    return { endpoint, path, route: joinRoute(own, path), route_key: routeKey(route) };
  } catch (thrown) {
    if (!(thrown instanceof RouteSyntaxError)) throw thrown;
    throw new AppError(
      'invalid_spec',
      `${endpoint.method} ${endpoint.path}: with the base path ${basePath ?? '/'}, the path ${thrown.message}`,
      {},
      { cause: thrown },
    );
  }
}

function requireSameScope(owner: ExistingEndpoint, { domain, collection }: ImportScope): void {
  if (owner.collection_id === (collection?.id ?? null)) return;
  const place = owner.collection_id === null ? 'no collection' : `the collection ${owner.collection_id}`;
  throw new AppError(
    'route_taken',
    `${owner.method} ${owner.route} on domain "${domain}" is taken by the endpoint "${owner.name}" (${owner.id}), which is in ${place}; import into that, or delete the endpoint`,
    { details: { endpoint_id: owner.id } },
  );
}

function additionOf(
  item: RoutedImport,
  { domain, collection }: ImportScope,
  api: ApiToImport,
  documentId: string | null,
) {
  const { endpoint, path, route, route_key } = item;
  const code = endpoint.handler?.code ?? endpoint.generatedCode;
  const { entry, files } = endpoint.handler ?? ONE_FILE;
  const dependencies = endpoint.handler && noneAsNull(api.dependencies);
  const edition = endpoint.handler && normalEdition(api.edition);
  return {
    id: randomUUID(),
    name: endpoint.name,
    path,
    method: endpoint.method,
    domain,
    collection_id: collection?.id ?? null,
    description: endpoint.description,
    ...{ code, edition, entry, files, lock: null },
    dependencies,
    policies: policiesOf(null, endpoint, api),
    route,
    route_key,
    source_key: sourceKey({ code, dependencies, edition, entry, files, lock: null }),
    imported_from: api.title,
    ...originOf(endpoint, documentId),
    generated_digest: endpoint.handler ? null : digest(code),
    handler_digest: endpoint.handler ? sourceDigest(digest(code), endpoint.handler) : null,
    status: 'created' as const,
  };
}

/** The changes to an existing endpoint; undefined when there are none. */
export function changeOf(
  before: ExistingEndpoint,
  item: RoutedImport,
  api: ApiToImport,
  documentId: string | null,
) {
  const { endpoint, route } = item;
  // The same route may be written as a whole, or below the base path: as its author has done.
  const path = route === before.route ? before.path : item.path;
  const origin = originOf(endpoint, documentId);
  // A document without a description keeps the existing one.
  const description = endpoint.description ?? before.description;
  const code = newCode(before, endpoint);
  const dependencies =
    endpoint.handler && api.dependencies ? noneAsNull(api.dependencies) : before.dependencies;
  // A handler brings its files; generated code has none, and replaces no code that a user wrote.
  const { entry, files } = code === undefined ? before : (endpoint.handler ?? ONE_FILE);
  const edition = endpoint.handler && api.edition !== undefined ? normalEdition(api.edition) : before.edition;
  const changesFiles = entry !== before.entry || !isDeepStrictEqual(files, before.files);
  const changesDependencies = !isDeepStrictEqual(dependencies ?? {}, before.dependencies ?? {});
  // An import has no lock, and that of other crates does not fit.
  const lock = changesDependencies ? null : before.lock;
  const policies = policiesOf(before.policies, endpoint, api);
  const changesPolicies = !isDeepStrictEqual(policies, before.policies);
  const rerouted = route !== before.route || changesPolicies;
  const isVisible =
    endpoint.name !== before.name ||
    description !== before.description ||
    path !== before.path ||
    rerouted ||
    changesDependencies ||
    changesFiles ||
    edition !== before.edition ||
    (code !== undefined && code.digest !== before.code_digest);
  const isNoted =
    before.imported_from !== api.title ||
    before.imported_document_id !== origin.imported_document_id ||
    before.imported_operation !== origin.imported_operation ||
    (code !== undefined &&
      (code.generated !== before.generated_digest || code.brought !== before.handler_digest));
  if (!isVisible && !isNoted) return undefined;
  return {
    id: before.id,
    name: endpoint.name,
    path,
    description,
    ...{ edition, entry, files, dependencies, lock },
    policies,
    route,
    imported_from: api.title,
    ...origin,
    generated_digest: code ? code.generated : before.generated_digest,
    handler_digest: code ? code.brought : before.handler_digest,
    code: code?.text ?? null,
    source_key:
      code === undefined ? null : sourceKey({ code: code.text, edition, entry, files, dependencies, lock }),
    rerouted,
    is_visible: isVisible,
  };
}

/** The document and the operation that an endpoint is from. */
function originOf({ method, path }: ImportedEndpoint, documentId: string | null) {
  return {
    imported_document_id: documentId,
    imported_operation: documentId === null ? null : `${method} ${path}`,
  };
}

/** The other policies of an endpoint are its own. */
function policiesOf(
  before: Policies | null,
  { validate }: ImportedEndpoint,
  { validation }: ApiToImport,
): Policies | null {
  if (validation === undefined || validation === 'off') return before;
  const { validate: present, ...others } = before ?? {};
  const next = validate === undefined ? undefined : (JSON.parse(validate) as ValidatePolicy);
  // What enforces the same stays as it is written.
  if (present && next && enforceSame(present, next)) return before;
  const policies = { ...others, ...(next && { validate: next }) };
  return Object.keys(policies).length > 0 ? policies : null;
}

/** The code that replaces that of an endpoint: a handler always, generated code only if no user wrote any. */
function newCode(before: ExistingEndpoint, { handler, generatedCode }: ImportedEndpoint) {
  if (handler) {
    const own = digest(handler.code);
    return { text: handler.code, digest: own, generated: null, brought: sourceDigest(own, handler) };
  }
  if (hasOwnCode(before)) return undefined;
  const generated = digest(generatedCode);
  return { text: generatedCode, digest: generated, generated, brought: null };
}

/** Code that was not generated by an import, which has no files. */
function hasOwnCode({ is_blank, code_digest, generated_digest, files }: ExistingEndpoint): boolean {
  return !is_blank && (code_digest !== generated_digest || files !== null);
}

/** Whether the handler replaces code that a user wrote. */
function replacesOwnCode(before: ExistingEndpoint, handler: ImportedHandler): boolean {
  const known = [before.handler_digest, sourceDigest(digest(handler.code), handler)];
  return hasOwnCode(before) && !known.includes(sourceDigest(before.code_digest, before));
}

/** The digest of a handler with its files; of one file, that of its code. */
function sourceDigest<D extends string | null>(codeDigest: D, { entry, files }: SourceFiles): D | string {
  if (files === null) return codeDigest;
  const digests = Object.entries(files).map(([path, file]) => [path, file.digest]);
  return digest(JSON.stringify([codeDigest, entry, digests.sort()]));
}

function noneAsNull(dependencies: Dependencies | null): Dependencies | null {
  return dependencies && Object.keys(dependencies).length > 0 ? dependencies : null;
}

function rowOf(
  { endpoint, path }: RoutedImport,
  stored: { readonly id: string; readonly status: EndpointStatus } | undefined,
): Omit<ImportedRow, 'change' | 'code'> {
  if (!stored) throw new Error(`${endpoint.method} ${endpoint.path} was neither created nor updated`);
  const { name, method, handler } = endpoint;
  return { id: stored.id, name, path, method, status: stored.status, handler: handler?.file ?? null };
}

/** sha256 in hex, as PostgreSQL computes it from the stored text. */
export function digest(code: string): string {
  return createHash('sha256').update(code).digest('hex');
}

function* chunks<T>(items: readonly T[], endpointOf: (item: T) => ImportedEndpoint): Generator<readonly T[]> {
  let chunk: T[] = [];
  let code = 0;
  for (const item of items) {
    const { handler, generatedCode, validate } = endpointOf(item);
    const length = (handler?.code ?? generatedCode).length + (validate?.length ?? 0);
    if (chunk.length > 0 && (chunk.length >= CHUNK_ROWS || code + length > CHUNK_CODE)) {
      yield chunk;
      chunk = [];
      code = 0;
    }
    chunk.push(item);
    code += length;
  }
  if (chunk.length > 0) yield chunk;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
