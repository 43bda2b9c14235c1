/** The parameters of operations, and the styles in which their values are written. */
import { parameterNames, parseRoute } from '../../model/route-pattern.js';
import type { Warn } from '../warnings.js';
import type { Parameter, TextValue, ValueType } from './document.js';
import { isObject, itemsOf, type JsonObject, own, shortened, specError } from './json.js';
import type { References } from './references.js';
import type { Schemas } from './schemas.js';

const LOCATIONS: readonly string[] = ['path', 'query', 'header', 'cookie'];
/** Header parameters that the specification says to ignore: other parts of the document describe them. */
const IGNORED_HEADERS = ['accept', 'content-type', 'authorization'];
/** Styles of lists and scalars that generated handlers can parse. */
const SUPPORTED_STYLES: readonly string[] = ['form', 'simple', 'spaceDelimited', 'pipeDelimited'];

export class Parameters {
  readonly #references: References;
  readonly #schemas: Schemas;
  /** Parsed lists: the operations of a path item share its list. */
  readonly #lists = new Map<readonly unknown[], ReadonlyMap<string, Parameter>>();

  constructor(references: References, schemas: Schemas) {
    this.#references = references;
    this.#schemas = schemas;
  }

  /**
   * The parameters of one operation: its own, and those of its path item that it does not override.
   * @param label the operation, for messages
   * @param warn called for path parameters that do not match the path, and for unsupported styles
   * @throws AppError invalid_spec
   */
  read(
    label: string,
    path: string,
    item: JsonObject,
    operation: JsonObject,
    warn: Warn,
  ): readonly Parameter[] {
    const merged = [...new Map([...this.#list(item, label), ...this.#list(operation, label)]).values()];
    const described = merged.filter((parameter) => parameter.in === 'path');
    const inPath = pathParameters(path, described);
    for (const { name } of difference(described, inPath)) {
      warn(
        'parameters',
        `${label}: the path parameter "${shortened(name)}" is left out: the path does not have it`,
      );
    }
    for (const { name } of difference(inPath, described)) {
      warn(
        'parameters',
        `${label}: the path parameter "${shortened(name)}" is not described; it is treated as a string`,
      );
    }
    const parameters = [...inPath, ...merged.filter((parameter) => parameter.in !== 'path')];
    for (const parameter of parameters) {
      if (parameter.unsupportedStyle !== undefined) {
        warn('styles', `${label}: ${unsupportedParameter(parameter)}`);
      }
    }
    return parameters;
  }

  /** The list of an operation or a path item, by location and name. */
  #list(holder: JsonObject, label: string): ReadonlyMap<string, Parameter> {
    const items = itemsOf(own(holder, 'parameters'));
    const list = this.#lists.get(items) ?? this.#readList(items, label);
    this.#lists.set(items, list);
    return list;
  }

  #readList(items: readonly unknown[], label: string): ReadonlyMap<string, Parameter> {
    const parameters = new Map<string, Parameter>();
    items.forEach((item, at) => {
      const location = `${label}: parameters/${at}`;
      const parameter = this.#parse(this.#references.resolve(item, location), location);
      if (parameter.in === 'header' && IGNORED_HEADERS.includes(parameter.name.toLowerCase())) return;
      // Header names are case-insensitive.
      const name = parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name;
      const key = `${parameter.in} ${name}`;
      if (parameters.has(key)) {
        throw specError(
          location,
          `duplicate ${parameter.in} parameter "${shortened(name)}"; remove one of them`,
        );
      }
      parameters.set(key, parameter);
    });
    return parameters;
  }

  #parse(value: unknown, location: string): Parameter {
    const parameter = isObject(value) ? value : {};
    const name = own(parameter, 'name');
    const where = own(parameter, 'in');
    if (typeof name !== 'string' || name === '' || !isParameterLocation(where)) {
      throw specError(
        location,
        `is not a parameter: it needs a "name", and "in" as one of ${LOCATIONS.join(', ')}`,
      );
    }
    const schema = own(parameter, 'schema');
    const type = this.#schemas.typeOf(schema);
    return {
      name,
      in: where,
      required: where === 'path' || own(parameter, 'required') === true,
      type,
      itemType: this.#schemas.itemTypeOf(schema),
      ...(schema === undefined ? {} : parameterStyle(parameter, where, type)),
    };
  }
}

/**
 * One parameter for each `{name}` of the path, in its order: the described one, else a string.
 * @param path one that `parseRoute` accepts
 */
export function pathParameters(path: string, described: Iterable<Parameter>): readonly Parameter[] {
  const known = new Map([...described].map((parameter) => [parameter.name, parameter]));
  return parseRoute(path)
    .segments.flatMap(parameterNames)
    .map((name) => known.get(name) ?? { name, in: 'path', required: true, type: 'string', itemType: 'any' });
}

export type Style = Pick<TextValue, 'style' | 'unsupportedStyle'>;

/**
 * How a generated handler parses a value (OpenAPI: style, explode).
 * @param style the document's style, or OpenAPI's default
 * @param isRepeatable whether handlers get all values of a repeated name, as they do for forms but not for queries
 */
export function styleOf(style: string, explode: unknown, type: ValueType, isRepeatable = false): Style {
  if (type === 'object' && style === 'deepObject') return { style };
  if (type === 'object' || !SUPPORTED_STYLES.includes(style)) return { unsupportedStyle: style };
  const isExploded = explode === true || (explode !== false && style === 'form');
  if (type !== 'array') return {};
  if (isExploded) return isRepeatable ? { style: 'repeated' } : {};
  return style === 'spaceDelimited' || style === 'pipeDelimited' ? { style } : {};
}

function parameterStyle(parameter: JsonObject, where: Parameter['in'], type: ValueType): Style {
  const style = own(parameter, 'style');
  const defaultStyle = where === 'query' || where === 'cookie' ? 'form' : 'simple';
  // Only queries have the names that this style needs.
  if (style === 'deepObject' && where !== 'query') return { unsupportedStyle: style };
  return styleOf(typeof style === 'string' ? style : defaultStyle, own(parameter, 'explode'), type);
}

function unsupportedParameter({ in: where, name, type, unsupportedStyle = '' }: Parameter): string {
  const value = type === 'object' ? 'an object in the style' : 'in the style';
  return `the ${where} parameter "${shortened(name)}", ${value} "${shortened(unsupportedStyle)}", is not parsed; the handler gets the raw text`;
}

function difference(some: readonly Parameter[], others: readonly Parameter[]): readonly Parameter[] {
  return some.filter((parameter) => !others.includes(parameter));
}

function isParameterLocation(value: unknown): value is Parameter['in'] {
  return typeof value === 'string' && LOCATIONS.includes(value);
}
