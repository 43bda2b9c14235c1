/** The manifest of a bundle, `bundle.yaml`: what it is called, the crates of its handlers, and routes. */
import { LineCounter, parseDocument } from 'yaml';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../dependencies.js';
import { AppError, type ErrorCode, toError } from '../../errors.js';
import type { EndpointMethod } from '../../store/endpoints.js';
import { type Check, checkOf, describeProblem } from '../../validation/check.js';
import { MANIFEST_NAME } from './contents.js';
import { isNestedDeeperThan } from './yaml-depth.js';
import { placeIn } from './yaml-place.js';

export interface Manifest {
  readonly name: string | null;
  readonly dependencies: Dependencies | null;
  readonly routes: readonly ManifestRoute[];
  readonly warnings: readonly string[];
}

export interface ManifestRoute {
  readonly method: EndpointMethod;
  readonly path: string;
  /** Base name of the handler's file, without `.rs`. */
  readonly handler: string;
}

/** Far more aliases than a person writes, far fewer than it takes to fill the memory. */
const MAX_ALIASES = 100;
/** Levels of nesting; a manifest has five, and its parser needs some two for each. */
const MAX_DEPTH = 100;
const METHODS: readonly EndpointMethod[] = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'];
const KEYS = {
  root: ['bundle', 'dependencies', 'routes'],
  bundle: ['name', 'version'],
  route: ['method', 'path', 'handler'],
};

/** The manifest as it is written. A key without a value is null in YAML, and means the same as no key. */
interface Written {
  readonly bundle?: { readonly name?: string; readonly version?: string | number } | null;
  readonly dependencies?: Dependencies | null;
  readonly routes?: readonly { method: string; path: string; handler: string }[] | null;
}

const check = checkOf({
  type: 'object',
  properties: {
    bundle: {
      type: ['object', 'null'],
      properties: {
        name: { type: 'string', format: 'line', maxLength: 255 },
        // Without quotes, YAML takes 1.0 for a number.
        version: { type: ['string', 'number'] },
      },
    },
    dependencies: { type: ['object', 'null'] },
    routes: {
      type: ['array', 'null'],
      items: {
        type: 'object',
        properties: {
          method: { type: 'string', format: 'line' },
          path: { type: 'string', format: 'route-path' },
          handler: { type: 'string', format: 'line', maxLength: 255 },
        },
        required: ['method', 'path', 'handler'],
      },
    },
  },
});
const checkDependencies = checkOf(DEPENDENCIES_SCHEMA);

/** @throws AppError invalid_bundle, invalid_dependency naming the key, the line and the column */
export function readManifest(text: string): Manifest {
  const { value, where } = parse(text);
  const refuse = (code: ErrorCode, path: readonly string[], message: string) =>
    new AppError(code, `${MANIFEST_NAME}${where(path)}: ${message}`);
  const verify = (checking: Check, checked: unknown, code: ErrorCode, root: readonly string[]) => {
    const problem = checking(checked);
    if (!problem) return;
    const path = [...root, ...problem.path];
    const [first = 'the manifest', ...rest] = path;
    throw refuse(code, path, describeProblem(first, { path: rest, message: problem.message }));
  };
  verify(check, value, 'invalid_bundle', []);
  const written = value as Written;
  verify(checkDependencies, written.dependencies ?? {}, 'invalid_dependency', ['dependencies']);
  const routes = (written.routes ?? []).map(({ method: text, path, handler }, index) => {
    const method = METHODS.find((known) => known === text.toUpperCase());
    if (method) return { method, path, handler: handler.replace(/\.rs$/, '') };
    const place = ['routes', String(index), 'method'];
    throw refuse(
      'invalid_bundle',
      place,
      `${place.join('.')}: must be one of ${METHODS.join(', ')}, not ${JSON.stringify(text)}`,
    );
  });
  return {
    name: written.bundle?.name?.trim() ?? null,
    dependencies: written.dependencies ?? null,
    routes,
    warnings: unknownKeys(written).map(
      (path) => `${MANIFEST_NAME}${where(path)}: ${path.join('.')} means nothing here and is ignored.`,
    ),
  };
}

function parse(text: string): { value: unknown; where: (path: readonly string[]) => string } {
  const lines = new LineCounter();
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `, line ${line}, column ${col}`;
  };
  if (isNestedDeeperThan(MAX_DEPTH, text)) {
    throw new AppError('invalid_bundle', `${MANIFEST_NAME}: is nested too deeply`);
  }
  try {
    const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'error' });
    const [error] = document.errors;
    if (error) throw new AppError('invalid_bundle', `${MANIFEST_NAME}${at(error.pos[0])}: ${error.message}`);
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES }) ?? {};
    return { value, where: (path) => at(placeIn(document.contents, path)) };
  } catch (thrown) {
    if (thrown instanceof AppError) throw thrown;
    // Aliases that stand for nothing, or for too much.
    throw new AppError(
      'invalid_bundle',
      `${MANIFEST_NAME}: ${toError(thrown).message}`,
      {},
      { cause: thrown },
    );
  }
}

function unknownKeys({ bundle, routes, ...root }: Written): string[][] {
  const unknown = (value: object, known: readonly string[], path: readonly string[]) =>
    Object.keys(value)
      .filter((key) => !known.includes(key))
      .map((key) => [...path, key]);
  return [
    ...unknown(root, KEYS.root, []),
    ...unknown(bundle ?? {}, KEYS.bundle, ['bundle']),
    ...(routes ?? []).flatMap((route, index) => unknown(route, KEYS.route, ['routes', String(index)])),
  ];
}
