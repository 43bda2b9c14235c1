/** Writes the OpenAPI document of endpoints that are in one place. Pure. */
import { entriesOf, own } from '../../import/openapi/json.js';
import { basePathOf } from '../../import/openapi/servers.js';
import { RouteSyntaxError, routeBelow, withoutBasePath } from '../../model/route-pattern.js';
import type { ExistingEndpoint } from '../../store/import-rows.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import { Pauses } from '../../util/pauses.js';
import { DocumentSchemas, keptOperation, writtenOperation } from './openapi-operations.js';
import { DocumentPaths } from './openapi-paths.js';

/** Endpoints that one document describes: those of an imported one, and others that fit into it. */
export interface DocumentGroup {
  /** The document that was imported; null when there is none. */
  readonly imported: { readonly id: string; readonly content: JsonObject } | null;
  /** What a document without an imported one says of the whole API. */
  readonly info: { readonly title: string; readonly description: string | null };
  /** Where its paths begin. */
  readonly basePath: string | null;
  readonly endpoints: readonly ExistingEndpoint[];
}

/** Where the paths of an imported document begin. */
export function basePathIn(document: JsonObject): string | null {
  return basePathOf(document, () => undefined);
}

/** The path of an endpoint in a document; undefined when a document cannot say it. */
export function pathInDocument(
  { route, method, imported_document_id, imported_operation: operation }: ExistingEndpoint,
  { imported, basePath }: Pick<DocumentGroup, 'imported' | 'basePath'>,
): string | undefined {
  const imports = imported && imported_document_id === imported.id ? operation : null;
  const path = imports?.startsWith(`${method} `) ? imports.slice(method.length + 1) : undefined;
  if (path !== undefined && isBelow(basePath, path, route)) return path;
  const below = withoutBasePath(basePath, route);
  // A document has no parameter for the rest of a path.
  if (below === undefined || /\{\*/.test(below) || !isBelow(basePath, below, route)) return undefined;
  return below;
}

function isBelow(basePath: string | null, path: string, route: string): boolean {
  try {
    return routeBelow(basePath, path) === route;
  } catch (thrown) {
    if (thrown instanceof RouteSyntaxError) return false;
    throw thrown;
  }
}

/** The document; its endpoints have a path in it. */
export async function writeDocument(group: DocumentGroup): Promise<JsonObject> {
  const { imported, endpoints } = group;
  const document = imported?.content ?? emptyDocument(group);
  const components = own(document, 'components');
  const given = isObject(components) ? own(components, 'schemas') : undefined;
  const schemas = new DocumentSchemas(isObject(given) ? given : {});
  const paths = new DocumentPaths(document);
  const kept = new Set<string>();
  const added: (() => void)[] = [];
  const pauses = new Pauses();
  for (const endpoint of endpoints) {
    await pauses.here();
    const { method } = endpoint;
    const path = pathInDocument(endpoint, group);
    if (path === undefined) continue;
    const [, before = ''] = /^[A-Z]+ (.*)$/s.exec(endpoint.imported_operation ?? '') ?? [];
    const isImported = imported !== null && endpoint.imported_document_id === imported.id;
    const isSame = isImported && endpoint.imported_operation === `${method} ${before}`;
    const operation = isSame ? paths.find(method, before) : undefined;
    if (operation && path === before) {
      kept.add(`${method} ${path}`);
      paths.replace(method, path, keptOperation(endpoint, path, operation));
    } else {
      const written = operation
        ? keptOperation(endpoint, path, paths.alone(before, operation))
        : writtenOperation(endpoint, path, schemas);
      added.push(() => paths.add(method, path, written));
    }
  }
  paths.keepOnly(kept);
  for (const add of added) {
    await pauses.here();
    add();
  }
  const all = schemas.all();
  return {
    ...document,
    paths: paths.all(),
    ...(Object.keys(all).length > entriesOf(given).length && {
      components: { ...(isObject(components) ? components : {}), schemas: all },
    }),
  };
}

function emptyDocument({ info: { title, description }, basePath }: DocumentGroup): JsonObject {
  return {
    openapi: '3.1.0',
    info: { title, ...(description !== null && { description }), version: '1.0.0' },
    // Braces would be variables.
    ...(!/[{}]/.test(basePath ?? '') && { servers: [{ url: basePath ?? '/' }] }),
    paths: {},
  };
}
