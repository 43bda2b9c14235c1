/** The operations of a bundle: those of its document, and what the routes of its manifest say about them or add. Pure. */
import { AppError } from '../../errors.js';
import { joinRoute, parseRoute, RouteSyntaxError, routeKey } from '../../route-pattern.js';
import type { OpenApiDocument, Operation, Parameter } from '../openapi/document.js';
import { MANIFEST_NAME } from './contents.js';
import type { ManifestRoute } from './manifest.js';

export interface PlannedOperation {
  readonly operation: Operation;
  /** The route of the manifest that names its handler. */
  readonly route: ManifestRoute | null;
}

const MAX_NAME_LENGTH = 255;

/**
 * A route of the manifest is the operation that answers the same requests, whatever its parameters are called; one that
 * the document does not have becomes an operation of its own.
 * @throws AppError invalid_bundle
 */
export function planOperations(
  document: OpenApiDocument | null,
  routes: readonly ManifestRoute[],
): PlannedOperation[] {
  const basePath = document?.basePath ?? null;
  const byKey = new Map<string, ManifestRoute>();
  for (const [index, route] of routes.entries()) {
    const key = keyOf(basePath, route, `${MANIFEST_NAME}: routes.${index}`);
    const earlier = byKey.get(key);
    if (earlier) {
      throw new AppError(
        'invalid_bundle',
        `${MANIFEST_NAME}: routes.${index} (${nameOf(route)}) answers the same requests as ` +
          `routes.${routes.indexOf(earlier)} (${nameOf(earlier)}); remove one of them.`,
      );
    }
    byKey.set(key, route);
  }
  const described = (document?.operations ?? []).map((operation) => {
    const key = keyOf(basePath, operation, operation.name);
    const route = byKey.get(key) ?? null;
    byKey.delete(key);
    return { operation, route };
  });
  const planned = [
    ...described,
    ...[...byKey.values()].map((route) => ({ operation: operationOf(route), route })),
  ];
  checkNames(planned.map(({ operation }) => operation.name));
  return planned;
}

function keyOf(
  basePath: string | null,
  { method, path }: { readonly method: string; readonly path: string },
  where: string,
): string {
  try {
    return `${method} ${routeKey(joinRoute(basePath, path))}`;
  } catch (thrown) {
    if (!(thrown instanceof RouteSyntaxError)) throw thrown;
    throw new AppError(
      'invalid_bundle',
      `${where}: the route ${path} after the base path ${basePath ?? '/'} ${thrown.message}.`,
    );
  }
}

/** Without a document, nothing is known but the parameters in the path: texts, all of them there. */
function operationOf(route: ManifestRoute): Operation {
  const parameters = parseRoute(route.path).segments.flatMap((segment): Parameter[] =>
    segment.kind === 'param'
      ? [{ name: segment.name, in: 'path', required: true, type: 'string', itemType: 'any' }]
      : [],
  );
  return {
    operationId: null,
    name: nameOf(route),
    method: route.method,
    path: route.path,
    description: null,
    parameters,
    body: null,
  };
}

function nameOf({ method, path }: ManifestRoute): string {
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
