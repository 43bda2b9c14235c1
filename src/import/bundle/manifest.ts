/** The manifest of a bundle, `bundle.yaml`: what it is called, the crates of its handlers, and routes. */
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../dependencies.js';
import { ENDPOINT_METHODS, type EndpointMethod } from '../../endpoint-method.js';
import { AppError, type ErrorCode } from '../../errors.js';
import { type Check, checkOf, describeProblem } from '../../validation/check.js';
import { Warnings } from '../warnings.js';
import { readYaml, YamlProblem, type YamlText } from '../yaml/read-yaml.js';
import { MANIFEST_NAME } from './contents.js';

export interface Manifest {
  readonly name: string | null;
  /** Null when the manifest says nothing of them. */
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

/** Far more than a person writes. */
const YAML_LIMITS = { depth: 100, aliases: 100 };

/** @throws AppError invalid_bundle, invalid_dependency naming the key, the line and the column */
export function readManifest(text: string): Manifest {
  const { value = {}, where } = parse(text);
  const refuse = (code: ErrorCode, path: readonly string[], message: string) =>
    new AppError(code, `${MANIFEST_NAME}, ${where(path)}: ${message}`);
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
  const routes = (written.routes ?? []).map(({ method: text, path, handler }, index): ManifestRoute => {
    const wrong = (key: string, message: string) => {
      const place = ['routes', String(index), key];
      return refuse('invalid_bundle', place, `${place.join('.')}: ${message}`);
    };
    const method = ENDPOINT_METHODS.find((known) => known === text.toUpperCase());
    if (!method) {
      throw wrong('method', `must be one of ${ENDPOINT_METHODS.join(', ')}, not ${JSON.stringify(text)}`);
    }
    if (handler.includes('/')) {
      const name = handler.slice(handler.lastIndexOf('/') + 1);
      throw wrong('handler', `is the name of a file without its folder: ${JSON.stringify(name)}`);
    }
    return { method, path, handler: handler.replace(/\.rs$/, '') };
  });
  const warnings = new Warnings();
  warnings.addEach(
    'manifest',
    unknownKeys(written),
    (path) => `${MANIFEST_NAME}, ${where(path)}: ${path.join('.')} means nothing here and is ignored.`,
  );
  return {
    name: written.bundle?.name?.trim() ?? null,
    dependencies: written.dependencies ?? null,
    routes,
    warnings: warnings.list(),
  };
}

function parse(text: string): YamlText {
  try {
    return readYaml(text, YAML_LIMITS);
  } catch (thrown) {
    if (!(thrown instanceof YamlProblem)) throw thrown;
    const { message, place } = thrown;
    const file = place === undefined ? MANIFEST_NAME : `${MANIFEST_NAME}, ${place}`;
    throw new AppError('invalid_bundle', `${file}: ${message}`, {}, { cause: thrown });
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
