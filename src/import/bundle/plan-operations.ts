/** The operations of a bundle: those of its document, and what the routes of its manifest say about them or add. Pure. */
import type { EndpointMethod } from '../../endpoint-method.js';
import { AppError } from '../../errors.js';
import { RouteSyntaxError, routeBelow, routeKey, withoutBasePath } from '../../route-pattern.js';
import type { OpenApiDocument, Operation } from '../openapi/document.js';
import { pathParameters } from '../openapi/path-parameters.js';
import { MANIFEST_NAME } from './contents.js';
import type { ManifestRoute } from './manifest.js';

export interface PlannedOperation {
  readonly operation: Operation;
  /** The route of the manifest that names its handler. */
  readonly route: ManifestRoute | null;
}

const MAX_NAME_LENGTH = 255;

/** A route of the manifest, and where it belongs. */
interface PlacedRoute {
  readonly route: ManifestRoute;
  /** Below the base path, as the paths of operations are. */
  readonly path: string;
}

/**
 * A route of the manifest is the operation that answers the same requests, whatever its parameters are called; one that
 * the document does not have becomes an operation of its own. Its path may be written as the document writes paths, or
 * with the base path before it: it is the operation with exactly this path if there is one, else what comes after
 * the base path if it begins with that.
 * @throws AppError invalid_bundle
 */
export function planOperations(
  document: OpenApiDocument | null,
  routes: readonly ManifestRoute[],
): PlannedOperation[] {
  const basePath = document?.basePath ?? null;
  const operations = document?.operations ?? [];
  const described = new Set(operations.map(keyOf));
  const byKey = new Map<string, PlacedRoute>();
  for (const [index, route] of routes.entries()) {
    const placed = { route, path: pathBelow(basePath, route, described) };
    requireRoute(basePath, placed, index);
    const key = keyOf({ method: route.method, path: placed.path });
    const earlier = byKey.get(key)?.route;
    if (earlier) {
      throw new AppError(
        'invalid_bundle',
        `${MANIFEST_NAME}: routes.${index} (${nameOf(route)}) answers the same requests as ` +
          `routes.${routes.indexOf(earlier)} (${nameOf(earlier)}); remove one of them.`,
      );
    }
    byKey.set(key, placed);
  }
  const planned = [
    ...operations.map((operation) => ({ operation, route: byKey.get(keyOf(operation))?.route ?? null })),
    ...[...byKey]
      .filter(([key]) => !described.has(key))
      .map(([, placed]) => ({ operation: operationOf(placed), route: placed.route })),
  ];
  checkNames(planned.map(({ operation }) => operation.name));
  return planned;
}

interface MethodAndPath {
  readonly method: EndpointMethod;
  readonly path: string;
}

/** What two have in common that answer the same requests, wherever they are below. */
function keyOf({ method, path }: MethodAndPath): string {
  return `${method} ${routeKey(path)}`;
}

function pathBelow(basePath: string | null, route: ManifestRoute, described: ReadonlySet<string>): string {
  if (basePath === null || described.has(keyOf(route))) return route.path;
  return withoutBasePath(basePath, route.path) ?? route.path;
}

function requireRoute(basePath: string | null, { route, path }: PlacedRoute, index: number): void {
  try {
    routeBelow(basePath, path);
  } catch (thrown) {
    if (!(thrown instanceof RouteSyntaxError)) throw thrown;
    throw new AppError(
      'invalid_bundle',
      `${MANIFEST_NAME}: routes.${index}: the route ${route.path} after the base path ${basePath ?? '/'} ${thrown.message}.`,
      {},
      { cause: thrown },
    );
  }
}

/** Without a document, nothing is known but the parameters in the path. */
function operationOf({ route: { method }, path }: PlacedRoute): Operation {
  return {
    operationId: null,
    name: nameOf({ method, path }),
    method,
    path,
    description: null,
    parameters: pathParameters(path, []),
    body: null,
  };
}

function nameOf({ method, path }: MethodAndPath): string {
  return `${method} ${path}`;
}

/** Routes without an operationId are named like `GET /pets`, which an operationId of the document may be too. */
function checkNames(names: readonly string[]): void {
  const seen = new Set<string>();
  for (const name of names) {
    if (name.length > MAX_NAME_LENGTH) {
      throw new AppError(
        'invalid_bundle',
        `${MANIFEST_NAME}: the route ${name} is too long to be the name of its endpoint (${MAX_NAME_LENGTH} characters).`,
      );
    }
    if (seen.has(name)) {
      throw new AppError(
        'invalid_bundle',
        `${MANIFEST_NAME}: ${name} is the operationId of another operation too.`,
      );
    }
    seen.add(name);
  }
}
