/** The manifest of a bundle, `bundle.yaml`: its name, the crates of its handlers, and routes. */
import { AppError, type ErrorCode } from '../../errors.js';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../model/crates.js';
import { ENDPOINT_METHODS, type EndpointMethod } from '../../model/endpoint-method.js';
import { type Check, describeProblem } from '../../model/problems.js';
import { checkOf } from '../../model/schema-check.js';
import { Warnings } from '../warnings.js';
import { type ParsedYaml, parseYaml, YamlError } from '../yaml.js';
import { MANIFEST_NAME } from './contents.js';
import { bundleError } from './errors.js';

export interface Manifest {
  readonly name: string | null;
  /** Null when the manifest has no dependencies. */
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

/** The validated YAML. A key without a value is null, which is treated like a missing key. */
interface RawManifest {
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
        // YAML parses 1.0 without quotes as a number.
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

const YAML_LIMITS = { depth: 100, aliases: 100 };

/** @throws AppError invalid_bundle, invalid_dependency naming the key, the line and the column */
export function readManifest(text: string): Manifest {
  const { value = {}, locationOf } = parse(text);
  const errorAt = (code: ErrorCode, path: readonly string[], message: string) =>
    new AppError(code, `${MANIFEST_NAME}, ${locationOf(path)}: ${message}`);
  const verify = (validate: Check, checked: unknown, code: ErrorCode, root: readonly string[]) => {
    const problem = validate(checked);
    if (!problem) return;
    const path = [...root, ...problem.path];
    const [first = 'the manifest', ...rest] = path;
    throw errorAt(code, path, describeProblem(first, { path: rest, message: problem.message }));
  };
  verify(check, value, 'invalid_bundle', []);
  const raw = value as RawManifest;
  verify(checkDependencies, raw.dependencies ?? {}, 'invalid_dependency', ['dependencies']);
  const routes = (raw.routes ?? []).map(({ method: text, path, handler }, index): ManifestRoute => {
    const invalid = (key: string, message: string) => {
      const keys = ['routes', String(index), key];
      return errorAt('invalid_bundle', keys, `${keys.join('.')}: ${message}`);
    };
    const method = ENDPOINT_METHODS.find((known) => known === text.toUpperCase());
    if (!method) {
      throw invalid('method', `must be one of ${ENDPOINT_METHODS.join(', ')}, not ${JSON.stringify(text)}`);
    }
    if (handler.includes('/')) {
      const name = handler.slice(handler.lastIndexOf('/') + 1);
      throw invalid('handler', `must be a file name without a folder: ${JSON.stringify(name)}`);
    }
    return { method, path, handler: handler.replace(/\.rs$/, '') };
  });
  const warnings = new Warnings();
  warnings.addEach(
    'manifest',
    unknownKeys(raw),
    (path) => `${MANIFEST_NAME}, ${locationOf(path)}: ${path.join('.')} is not a known key and is ignored.`,
  );
  return {
    name: raw.bundle?.name?.trim() ?? null,
    dependencies: raw.dependencies ?? null,
    routes,
    warnings: warnings.list(),
  };
}

function parse(text: string): ParsedYaml {
  try {
    return parseYaml(text, YAML_LIMITS);
  } catch (thrown) {
    if (!(thrown instanceof YamlError)) throw thrown;
    const { message, location } = thrown;
    const file = location === undefined ? MANIFEST_NAME : `${MANIFEST_NAME}, ${location}`;
    throw bundleError(`${file}: ${message}`, { cause: thrown });
  }
}

function unknownKeys({ bundle, routes, ...root }: RawManifest): string[][] {
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
