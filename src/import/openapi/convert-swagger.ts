/**
 * Converts Swagger 2.0 to OpenAPI 3.0 with a library. It gets what import reads, in a form that leaves nothing to its
 * guesses: each operation has all its parameters, those of its path included, and what it consumes. Its newer versions
 * need a newer Node; this one forgets the styles of lists in forms, which are added here.
 */
import { upgradeFromTwoToThree } from '@scalar/openapi-upgrader/2.0-to-3.0';
import { isObject, type JsonObject } from '../../util/json-object.js';
import type { Warn } from '../warnings.js';
import { entriesOf, itemsOf, own, pointerOf, shortened, specError } from './json.js';
import { orLeftOut } from './left-out.js';
import { METHODS, PathItems } from './path-items.js';
import type { References } from './references.js';

const JSON_TYPE = 'application/json';
const URLENCODED = 'application/x-www-form-urlencoded';
const MULTIPART = 'multipart/form-data';
/** Responses are not read. */
const RESPONSES = { default: { description: '' } };

/** @param references of the document */
export function convertSwagger(document: JsonObject, references: References, warn: Warn): JsonObject {
  warn('document', '/swagger: the document is Swagger 2.0 and was converted to OpenAPI 3.0');
  const { info, host, basePath, schemes, definitions } = document;
  const paths = completePaths(document, references, warn);
  const encodings = formEncodings(paths);
  const converted = upgradeFromTwoToThree({
    swagger: '2.0',
    info,
    ...(typeof host === 'string' && { host }),
    ...(typeof basePath === 'string' && { basePath }),
    ...(Array.isArray(schemes) && { schemes }),
    ...(isObject(definitions) && { definitions }),
    paths,
  }) as JsonObject;
  for (const { at, encoding } of encodings) {
    const content = at.reduce<unknown>(
      (value, key) => (isObject(value) ? own(value, key) : undefined),
      converted,
    );
    for (const [, form] of entriesOf(content)) if (isObject(form)) Object.assign(form, { encoding });
  }
  return converted;
}

const STYLES: ReadonlyMap<unknown, string> = new Map([
  ['csv', 'form'],
  ['ssv', 'spaceDelimited'],
  ['pipes', 'pipeDelimited'],
]);

/** The styles of lists in forms, and where they belong in the converted document. */
function formEncodings(paths: JsonObject) {
  return entriesOf(paths).flatMap(([path, item]) =>
    entriesOf(item).flatMap(([method, operation]) => {
      const parameters = isObject(operation) ? itemsOf(own(operation, 'parameters')).filter(isObject) : [];
      const lists = parameters.filter(
        (field) => own(field, 'in') === 'formData' && own(field, 'type') === 'array',
      );
      const encoding = lists.flatMap(({ name, collectionFormat }) => {
        const style = STYLES.get(collectionFormat);
        return style === undefined ? [] : [[String(name), { style, explode: false }]];
      });
      const at = ['paths', path, method, 'requestBody', 'content'];
      return encoding.length === 0 ? [] : [{ at, encoding: Object.fromEntries(encoding) as JsonObject }];
    }),
  );
}

/** The operations of all paths, each with what it needs of its path and of the document. */
function completePaths(document: JsonObject, references: References, warn: Warn): JsonObject {
  const items = new PathItems(references);
  const paths = entriesOf(own(document, 'paths')).filter(([path]) => !path.startsWith('x-'));
  const complete = paths.map(([path, value]) => {
    const location = pointerOf(['paths', path]);
    const [item = {}] = orLeftOut(location, warn, () => items.read(value, location));
    const operations = entriesOf(item).filter(([method]) => METHODS.has(method));
    return [
      path,
      Object.fromEntries(
        operations.flatMap(([method, operation]) => {
          const label = `${method.toUpperCase()} ${shortened(path)}`;
          return orLeftOut(label, warn, () => [
            method,
            completeOperation(label, operation, item, document, references, warn),
          ]);
        }),
      ),
    ];
  });
  return Object.fromEntries(complete);
}

function completeOperation(
  label: string,
  operation: unknown,
  item: JsonObject,
  document: JsonObject,
  references: References,
  warn: Warn,
): JsonObject {
  if (!isObject(operation)) throw specError(label, 'is not an object');
  const parameters = new Map<string, JsonObject>();
  for (const holder of [item, operation]) {
    itemsOf(own(holder, 'parameters')).forEach((value, at) => {
      const parameter = parameterOf(
        references.relocated(references.resolve(value, `${label}: parameters/${at}`)),
        label,
        at,
      );
      parameters.set(`${own(parameter, 'in')} ${own(parameter, 'name')}`, withStyle(parameter, label, warn));
    });
  }
  const { consumes: _, produces: __, responses: ___, ...members } = operation;
  const all = [...parameters.values()];
  const consumes = textsOf(own(operation, 'consumes')) ?? textsOf(own(document, 'consumes')) ?? [];
  const fields = all.filter((parameter) => own(parameter, 'in') === 'formData');
  const hasBody = all.some((parameter) => own(parameter, 'in') === 'body');
  if (hasBody && fields.length > 0)
    warn(
      'bodies',
      `${label}: has both a body and fields of a form, which exclude each other; only the body is read`,
    );
  const read = hasBody ? all.filter((parameter) => !fields.includes(parameter)) : all;
  return { ...members, parameters: read, consumes: mediaTypes(consumes, read), responses: RESPONSES };
}

function parameterOf(value: unknown, label: string, at: number): JsonObject {
  if (isObject(value) && typeof own(value, 'in') === 'string' && typeof own(value, 'name') === 'string') {
    return value;
  }
  throw specError(label, `parameters/${at}: is not a parameter: it needs "name" and "in"`);
}

/** A parameter whose style is explicit, and is one that OpenAPI 3.0 has; else it is text. */
function withStyle(parameter: JsonObject, label: string, warn: Warn): JsonObject {
  if (own(parameter, 'type') !== 'array') return { ...parameter };
  const { in: where, name, collectionFormat: style = 'csv' } = parameter;
  const styles = where === 'query' || where === 'formData' ? ['csv', 'ssv', 'pipes', 'multi'] : ['csv'];
  if (styles.includes(String(style))) return { ...parameter, collectionFormat: style };
  warn(
    'styles',
    `${label}: the ${where} parameter "${shortened(String(name))}", in the style "${shortened(String(style))}", is not parsed; the handler gets the raw text`,
  );
  const { items: _, ...text } = parameter;
  return { ...text, type: 'string' };
}

/** What an operation consumes: a form if it has fields of one, with files if it has any. */
function mediaTypes(consumes: readonly string[], parameters: readonly JsonObject[]): readonly string[] {
  const fields = parameters.filter((parameter) => own(parameter, 'in') === 'formData');
  if (fields.some((field) => own(field, 'type') === 'file')) return [MULTIPART];
  if (fields.length === 0) return consumes.length > 0 ? consumes : [JSON_TYPE];
  const forms = consumes.filter((type) => type === MULTIPART || type === URLENCODED);
  return forms.length > 0 ? forms : [URLENCODED];
}

function textsOf(value: unknown): readonly string[] | undefined {
  if (typeof value === 'string') return [value];
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : undefined;
}
