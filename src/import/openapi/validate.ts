/**
 * Validates a document against the specification, with the schemas of the OpenAPI parser.
 *
 * The parser inlines every `$ref` before it validates, which takes seconds for large documents and does not terminate
 * for hostile ones. It does not inline external references, so it gets a copy in which all references are external: the
 * specification allows a reference wherever it allows its target. `references.ts` checks the references, and their
 * targets are validated in their own place.
 */
import { validate } from '@readme/openapi-parser';
import { AppError, toError } from '../../errors.js';
import { MAX_ROUTE_LENGTH } from '../../model/route-pattern.js';
import { entriesOf, isObject, type JsonObject, own, pointerOf, shortened, specError } from './json.js';
import type { References } from './references.js';
import { isData, isMapOfNames } from './scan.js';

const MAX_REPORTED = 5;
/** Text is truncated to this length: the schemas do not depend on the rest. */
const MAX_TEXT = 200;

/** Checked by `operations.ts` instead: the parser sees no reference targets here, and does not report all locations. */
const DISABLED_RULES = {
  'array-without-items': 'warning',
  'duplicate-non-request-body-parameters': 'warning',
  'duplicate-operation-id': 'warning',
  'invalid-security-scheme-properties': 'warning',
  'non-optional-path-parameters': 'warning',
  'path-parameters-not-in-parameters': 'warning',
  'path-parameters-not-in-path': 'warning',
} as const;

/** @throws AppError invalid_spec with the first few problems and their locations */
export async function validateDocument(root: JsonObject, references: References): Promise<void> {
  requireSecuritySchemes(root);
  const copy = validatableCopy(root, references);
  const result = await validate(copy as unknown as Parameters<typeof validate>[0], {
    resolve: { external: false, file: false },
    validate: { errors: { colorize: false }, rules: { openapi: DISABLED_RULES } },
  }).catch((thrown: unknown) => {
    const cause = toError(thrown);
    throw specError('/', `cannot be validated: ${shortened(cause.message)}`, { cause });
  });
  if (result.valid) return;
  const { errors, additionalErrors } = result;
  const shown = errors.slice(0, MAX_REPORTED).map(({ message }) => describe(message, copy));
  const more = errors.length - shown.length + additionalErrors;
  throw new AppError(
    'invalid_spec',
    `The document is not valid OpenAPI: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`,
  );
}

/** The parser reads members of security schemes before it validates their types. */
function requireSecuritySchemes(root: JsonObject): void {
  const components = own(root, 'components');
  const schemes = isObject(components) ? own(components, 'securitySchemes') : undefined;
  const path = ['components', 'securitySchemes'];
  if (schemes !== undefined && !isObject(schemes)) throw specError(pointerOf(path), 'must be an object');
  const wrong = entriesOf(schemes).find(([, scheme]) => !isObject(scheme));
  if (wrong) throw specError(pointerOf([...path, wrong[0]]), 'must be an object');
}

/** Replaces the parser's code frame in a message by the JSON pointer of the line that it marks. */
function describe(message: string, copy: JsonObject): string {
  const [heading = ''] = message.split('\n\n');
  const text = shortened(heading.replaceAll('\n', ' ').replace(/^[A-Z ]+(?=must )/, ''));
  const line = /^> *(\d+) \|/m.exec(message)?.[1];
  const path = line === undefined ? undefined : pathAtLine(copy, Number(line));
  return path ? `${pointerOf(path)}: ${text}` : text;
}

/** A copy in which all references are external and all data is empty. */
function validatableCopy(root: JsonObject, references: References): JsonObject {
  const paths = own(root, 'paths');
  if (!isObject(paths)) return copyMembers(root, false);
  return { ...copyMembers({ ...root, paths: {} }, false), paths: copyPaths(paths, references) };
}

/** The parser does not validate extensions: a path item there is inlined at the first reference to it. */
function copyPaths(paths: JsonObject, references: References): JsonObject {
  const seen = new Set<unknown>();
  const copies = Object.entries(paths)
    // The specification allows extensions here; the parser does not. Paths that are too long for a route are left out
    // later and would take the parser minutes.
    .filter(([path]) => !path.startsWith('x-') && path.length <= MAX_ROUTE_LENGTH)
    .map(([path, item]) => {
      const target = references.resolve(item, pointerOf(['paths', path]));
      if (
        !isObject(item) ||
        !isObject(target) ||
        !references.isReferencedExtension(target) ||
        seen.has(target)
      ) {
        return [path, copyValue(item, false)];
      }
      seen.add(target);
      const { $ref: _followed, ...siblings } = item;
      return [path, copyMembers({ ...target, ...siblings }, false)];
    });
  return Object.fromEntries(copies);
}

function copyMembers(object: JsonObject, isMap: boolean): JsonObject {
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(object)) {
    if (key === '__proto__') continue;
    const value = object[key];
    // These change how the parser resolves references.
    if (!isMap && typeof value === 'string' && /^\$(id|schema|anchor|dynamicAnchor)$/.test(key)) continue;
    if (key === '$ref' && typeof value === 'string') copy[key] = `document${value.slice(0, MAX_TEXT)}`;
    else if (key !== 'enum' && isData(key, value, isMap)) copy[key] = withoutContent(value);
    // Booleans are schemas since 3.1; the parser reads members of them.
    else if (key === 'schema' && typeof value === 'boolean') copy[key] = {};
    else copy[key] = copyValue(value, isMapOfNames(key, isMap));
  }
  return copy;
}

function copyValue(value: unknown, isMap: boolean): unknown {
  if (typeof value === 'string') return value.slice(0, MAX_TEXT).replace(/[\u2028\u2029]/g, ' ');
  if (Array.isArray(value)) return value.map((item) => copyValue(item, false));
  return isObject(value) ? copyMembers(value, isMap) : value;
}

function withoutContent(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return isObject(value) ? {} : copyValue(value, false);
}

/** The path of the value on a line of the document, as formatted by `JSON.stringify` with indentation. */
function pathAtLine(root: unknown, line: number): readonly string[] | undefined {
  const path: string[] = [];
  let at = 1;
  /** Returns whether the line is within the value; if not, `at` is the line after it and `path` is unchanged. */
  const find = (value: unknown): boolean => {
    if (at === line) return true;
    at++;
    if (typeof value !== 'object' || value === null) return false;
    const members = Object.entries(value);
    for (const [key, member] of members) {
      path.push(key);
      if (find(member)) return true;
      path.pop();
    }
    if (members.length === 0) return false;
    if (at === line) return true;
    at++;
    return false;
  };
  return find(root) ? path : undefined;
}
