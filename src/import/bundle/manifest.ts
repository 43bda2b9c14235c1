/** The manifest of a bundle, `bundle.yaml`: its name, routes, and what its handlers use: crates and services. */
import { AppError, type ErrorCode } from '../../errors.js';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../model/crates.js';
import { ENDPOINT_METHODS, type EndpointMethod } from '../../model/endpoint-method.js';
import type { ServiceBinding } from '../../model/imported-parts.js';
import { type Check, describeProblem } from '../../model/problems.js';
import { checkOf } from '../../model/schema-check.js';
import { EDITIONS, type Edition } from '../../model/source-files.js';
import { type ImportWarning, Warnings } from '../warnings.js';
import { type ParsedYaml, parseYaml, YamlError } from '../yaml.js';
import { bundleError } from './errors.js';

export interface Manifest {
  readonly name: string | null;
  /** Null when the manifest has no dependencies. */
  readonly dependencies: Dependencies | null;
  /** Null when the manifest does not say it. */
  readonly edition: Edition | null;
  readonly routes: readonly ManifestRoute[];
  readonly bindings: readonly ServiceBinding[];
  readonly warnings: readonly ImportWarning[];
}

export interface ManifestRoute {
  readonly method: EndpointMethod;
  readonly path: string;
  /** Base name of the handler's file, without `.rs`; null for the only handler of the bundle. */
  readonly handler: string | null;
  /** The route in the manifest, for messages: `bundle.yaml: routes.0`. */
  readonly place: string;
}

const KEYS = {
  root: ['bundle', 'edition', 'dependencies', 'bindings', 'routes'],
  bundle: ['name', 'version'],
  route: ['method', 'path', 'handler'],
};

/** The validated YAML. A key without a value is null, which is treated like a missing key. */
interface RawManifest {
  readonly bundle?: { readonly name?: string; readonly version?: string | number } | null;
  readonly edition?: Edition | null;
  readonly dependencies?: Dependencies | null;
  readonly bindings?: Readonly<Record<string, string>> | null;
  readonly routes?: readonly { method: string; path: string; handler?: string | null }[] | null;
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
    edition: { type: ['string', 'null'], enum: [...EDITIONS, null] },
    dependencies: { type: ['object', 'null'] },
    bindings: {
      type: ['object', 'null'],
      maxProperties: 100,
      propertyNames: { type: 'string', format: 'pool-id' },
      additionalProperties: { type: 'string', format: 'line', maxLength: 255 },
    },
    routes: {
      type: ['array', 'null'],
      items: {
        type: 'object',
        properties: {
          method: { type: 'string', format: 'line' },
          path: { type: 'string', format: 'route-path' },
          handler: { type: ['string', 'null'], format: 'line', maxLength: 255 },
        },
        required: ['method', 'path'],
      },
    },
  },
});
const checkDependencies = checkOf(DEPENDENCIES_SCHEMA);

/** Those that are named: each is searched in the text. */
const MAX_UNKNOWN_KEYS = 50;

const YAML_LIMITS = { depth: 100, aliases: 100 };

/**
 * @param file its name, for messages
 * @throws AppError invalid_bundle, invalid_dependency naming the key, the line and the column
 */
export function readManifest(text: string, file: string): Manifest {
  const { value = {}, locationOf } = parse(text, file);
  const errorAt = (code: ErrorCode, path: readonly string[], message: string) =>
    new AppError(code, `${file}, ${locationOf(path)}: ${message}`);
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
  const routes = (raw.routes ?? []).map(({ method: text, path, handler = null }, index): ManifestRoute => {
    const invalid = (key: string, message: string) => {
      const keys = ['routes', String(index), key];
      return errorAt('invalid_bundle', keys, `${keys.join('.')}: ${message}`);
    };
    const method = ENDPOINT_METHODS.find((known) => known === text.toUpperCase());
    if (!method) {
      throw invalid('method', `must be one of ${ENDPOINT_METHODS.join(', ')}, not ${JSON.stringify(text)}`);
    }
    if (handler?.includes('/')) {
      const name = handler.slice(handler.lastIndexOf('/') + 1);
      throw invalid('handler', `must be a file name without a folder: ${JSON.stringify(name)}`);
    }
    const place = `${file}: routes.${index}`;
    return { method, path, handler: handler?.replace(/\.rs$/, '') ?? null, place };
  });
  const warnings = new Warnings(MAX_UNKNOWN_KEYS);
  warnings.addEach(
    'manifest',
    unknownKeys(raw),
    (path) => `${file}, ${locationOf(path)}: ${path.join('.')} is not a known key and is ignored.`,
  );
  return {
    name: raw.bundle?.name?.trim() ?? null,
    dependencies: raw.dependencies ?? null,
    edition: raw.edition ?? null,
    routes,
    bindings: Object.entries(raw.bindings ?? {}).map(([poolId, service]) => ({ poolId, service })),
    warnings: warnings.list(),
  };
}

function parse(text: string, file: string): ParsedYaml {
  try {
    return parseYaml(text, YAML_LIMITS);
  } catch (thrown) {
    if (!(thrown instanceof YamlError)) throw thrown;
    const { message, location } = thrown;
    const place = location === undefined ? file : `${file}, ${location}`;
    throw bundleError(`${place}: ${message}`, { cause: thrown });
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
