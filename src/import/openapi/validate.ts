/**
 * Validates a document against the specification, by the OpenAPI parser's own schemas.
 *
 * The parser would put a copy of the target in place of every `$ref` before it validates, which takes it seconds for large
 * documents and for ever for hostile ones. It leaves alone what leads out of the document, so it gets a copy in which
 * all references look like that: the specification allows a reference where it allows the thing itself. Where the
 * references really lead is checked by `references.ts`, and what is there is validated where it stands.
 */
import { validate } from '@readme/openapi-parser';
import { AppError, toError } from '../../errors.js';
import { MAX_ROUTE_LENGTH } from '../../route-pattern.js';
import { entriesOf, isObject, type JsonObject, own, pointerOf, shortened, specError } from './json.js';
import type { References } from './references.js';
import { isData, isMapOfNames } from './survey.js';

const SHOWN_PROBLEMS = 5;
/** Long texts matter to people only. */
const KEPT_TEXT = 200;

/** `operations.ts` checks these itself: the parser cannot look through references here, and does not name all places. */
const OWN_RULES = {
  'array-without-items': 'warning',
  'duplicate-non-request-body-parameters': 'warning',
  'duplicate-operation-id': 'warning',
  'invalid-security-scheme-properties': 'warning',
  'non-optional-path-parameters': 'warning',
  'path-parameters-not-in-parameters': 'warning',
  'path-parameters-not-in-path': 'warning',
} as const;

/**
 * Checks the document.
 * @throws AppError invalid_spec with the first few problems and their places
 */
export async function validateDocument(root: JsonObject, references: References): Promise<void> {
  requireSecuritySchemes(root);
  const copy = withoutReferences(root, references);
  const result = await validate(copy as unknown as Parameters<typeof validate>[0], {
    resolve: { external: false, file: false },
    validate: { errors: { colorize: false }, rules: { openapi: OWN_RULES } },
  }).catch((thrown: unknown) => {
    const cause = toError(thrown);
    throw specError('/', `cannot be validated: ${shortened(cause.message)}`, { cause });
  });
  if (result.valid) return;
  const { errors, additionalErrors } = result;
  const shown = errors.slice(0, SHOWN_PROBLEMS).map(({ message }) => describe(message, copy));
  const more = errors.length - shown.length + additionalErrors;
  throw new AppError(
    'invalid_spec',
    `The document is not valid OpenAPI: ${shown.join('; ')}${more > 0 ? `; and ${more} more` : ''}`,
  );
}

/** The parser looks into them before it checks that they are objects. */
function requireSecuritySchemes(root: JsonObject): void {
  const components = own(root, 'components');
  const schemes = isObject(components) ? own(components, 'securitySchemes') : undefined;
  const path = ['components', 'securitySchemes'];
  if (schemes !== undefined && !isObject(schemes)) throw specError(pointerOf(path), 'must be an object');
  const wrong = entriesOf(schemes).find(([, scheme]) => !isObject(scheme));
  if (wrong) throw specError(pointerOf([...path, wrong[0]]), 'must be an object');
}

/** A problem without the extract of the document that the parser draws, but with the place this extract shows. */
function describe(message: string, copy: JsonObject): string {
  const [heading = ''] = message.split('\n\n');
  const text = shortened(heading.replaceAll('\n', ' ').replace(/^[A-Z ]+(?=must )/, ''));
  const line = /^> *(\d+) \|/m.exec(message)?.[1];
  const place = line === undefined ? undefined : pathAtLine(copy, Number(line));
  return place ? `${pointerOf(place)}: ${text}` : text;
}

/** A copy with all references made to lead out of the document, and without data, which may be anything. */
function withoutReferences(root: JsonObject, references: References): JsonObject {
  const paths = own(root, 'paths');
  if (!isObject(paths)) return copyMembers(root, false);
  return { ...copyMembers({ ...root, paths: {} }, false), paths: copyPaths(paths, references) };
}

/** In extensions the parser looks at nothing: an item there is put in place of the first reference to it. */
function copyPaths(paths: JsonObject, references: References): JsonObject {
  const seen = new Set<unknown>();
  const copies = Object.entries(paths)
    // The specification allows extensions among the paths; the parser does not. What is too long for a route is left out
    // later, and would take the parser minutes.
    .filter(([path]) => !path.startsWith('x-') && path.length <= MAX_ROUTE_LENGTH)
    .map(([path, item]) => {
      const target = references.resolve(item, pointerOf(['paths', path]));
      if (!isObject(item) || !isObject(target) || !references.isInExtension(target) || seen.has(target)) {
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
    // Names of schemas change how the parser reads references, of which none are left.
    if (!isMap && typeof value === 'string' && /^\$(id|schema|anchor|dynamicAnchor)$/.test(key)) continue;
    if (key === '$ref' && typeof value === 'string') copy[key] = `document${value.slice(0, KEPT_TEXT)}`;
    else if (key !== 'enum' && isData(key, value, isMap)) copy[key] = withoutContent(value);
    // `true` and `false` are schemas since 3.1; the parser looks for members in them.
    else if (key === 'schema' && typeof value === 'boolean') copy[key] = {};
    else copy[key] = copyValue(value, isMapOfNames(key, isMap));
  }
  return copy;
}

function copyValue(value: unknown, isMap: boolean): unknown {
  if (typeof value === 'string') return value.slice(0, KEPT_TEXT).replace(/[\u2028\u2029]/g, ' ');
  if (Array.isArray(value)) return value.map((item) => copyValue(item, false));
  return isObject(value) ? copyMembers(value, isMap) : value;
}

function withoutContent(value: unknown): unknown {
  if (Array.isArray(value)) return [];
  return isObject(value) ? {} : copyValue(value, false);
}

/** The path of what stands on a line of the document as `JSON.stringify` writes it with indentation. */
function pathAtLine(root: unknown, line: number): readonly string[] | undefined {
  const path: string[] = [];
  let at = 1;
  /** Leaves `path` as it is when the line is found, and `at` on the line after the value when not. */
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
