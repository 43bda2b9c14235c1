/** The parameters of operations, and the styles in which their values are written. */
import { parameterNames, parseRoute } from '../../model/route-pattern.js';
import { isObject, type JsonObject } from '../../util/json-object.js';
import type { Warn } from '../warnings.js';
import type { Parameter, TextStyle, TextValue } from './document.js';
import { itemsOf, own, shortened, specError } from './json.js';
import type { References } from './references.js';
import type { Schemas } from './schemas.js';

const LOCATIONS: readonly string[] = ['path', 'query', 'header', 'cookie'];
/** Header parameters that the specification says to ignore: other parts of the document describe them. */
const IGNORED_HEADERS = ['accept', 'content-type', 'authorization'];
/** The styles that OpenAPI allows in each place; the first is the default. */
const STYLES: Readonly<Record<Parameter['in'], readonly [TextStyle, ...TextStyle[]]>> = {
  path: ['simple', 'label', 'matrix'],
  query: ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'],
  header: ['simple'],
  cookie: ['form'],
};

export class Parameters {
  readonly #references: References;
  readonly #schemas: Schemas;
  /** Parsed lists: the operations of a path item share its list. */
  readonly #lists = new Map<readonly unknown[], ReadonlyMap<string, Parameter>>();
  /** Parameters as the document has them. */
  readonly #described = new Map<Parameter, JsonObject>();
  /** The styles of parameters whose place does not allow them. */
  readonly #impossibleStyles = new Map<Parameter, string>();

  constructor(references: References, schemas: Schemas) {
    this.#references = references;
    this.#schemas = schemas;
  }

  /**
   * The parameters of one operation: its own, and those of its path item that it does not override.
   * @param label the operation, for messages
   * @param warn called for path parameters that do not match the path, and for styles that cannot be
   * @throws SpecError
   */
  read(
    label: string,
    path: string,
    item: JsonObject,
    operation: JsonObject,
    warn: Warn,
  ): readonly Parameter[] {
    const merged = [
      ...new Map([...this.#list(item, label, warn), ...this.#list(operation, label, warn)]).values(),
    ];
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
      const given = this.#impossibleStyles.get(parameter);
      if (given === undefined) continue;
      const { in: where, name, style } = parameter;
      warn(
        'styles',
        `${label}: the ${where} parameter "${shortened(name)}" is read in the style "${style}": it cannot have "${shortened(given)}"`,
      );
    }
    return parameters;
  }

  /** A parameter as the document has it; undefined when it is not described. */
  describedOf(parameter: Parameter): JsonObject | undefined {
    return this.#described.get(parameter);
  }

  /** The list of an operation or a path item, by location and name. */
  #list(holder: JsonObject, label: string, warn: Warn): ReadonlyMap<string, Parameter> {
    const items = itemsOf(own(holder, 'parameters'));
    const list = this.#lists.get(items) ?? this.#readList(items, label, warn);
    this.#lists.set(items, list);
    return list;
  }

  #readList(items: readonly unknown[], label: string, warn: Warn): ReadonlyMap<string, Parameter> {
    const parameters = new Map<string, Parameter>();
    items.forEach((item, at) => {
      const location = `${label}: parameters/${at}`;
      const parameter = this.#parse(this.#references.resolve(item, location), location);
      if (parameter.in === 'header' && IGNORED_HEADERS.includes(parameter.name.toLowerCase())) return;
      // Header names are case-insensitive.
      const name = parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name;
      const key = `${parameter.in} ${name}`;
      if (!parameters.has(key)) parameters.set(key, parameter);
      else
        warn(
          'parameters',
          `${location}: a second ${parameter.in} parameter "${shortened(name)}" is left out`,
        );
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
    const style = styleOf(parameter, where);
    const parsed: Parameter = {
      name,
      in: where,
      required: where === 'path' || own(parameter, 'required') === true,
      ...textValue(this.#schemas, schema, style),
    };
    this.#described.set(parsed, parameter);
    const given = givenStyle(parameter, where);
    if (typeof given === 'string' && given !== style.style && style.style !== 'text') {
      this.#impossibleStyles.set(parsed, given);
    }
    return parsed;
  }
}

/**
 * One parameter for each of the path, in its order: the described one, else a string.
 * @param path one that `parseRoute` accepts
 */
export function pathParameters(path: string, described: Iterable<Parameter>): readonly Parameter[] {
  const known = new Map([...described].map((parameter) => [parameter.name, parameter]));
  const names = parseRoute(path).segments.flatMap(parameterNames);
  return names.map((name) => known.get(name) ?? { name, in: 'path', required: true, ...PLAIN_TEXT });
}

/** A text without a description. */
const PLAIN_TEXT = { type: 'string', itemType: 'any', style: 'simple', explode: false } as const;

export type Style = Pick<TextValue, 'style' | 'explode'>;

/** What a schema says of a value that is written in this style. */
export function textValue(
  schemas: Schemas,
  schema: unknown,
  style: Style,
): Omit<TextValue, 'name' | 'required'> {
  const isSpread = style.style === 'form' && style.explode;
  // A list that has one item looks like that item.
  const type = isSpread && schemas.mayBeArray(schema) ? 'array' : schemas.typeOf(schema);
  const memberNames = isSpread && type === 'object' ? schemas.memberNamesOf(schema) : [];
  const allowed = schemas.allowedValues(schema);
  return {
    type,
    itemType: schemas.itemTypeOf(schema),
    ...style,
    ...(memberNames.length > 0 ? { memberNames } : {}),
    ...(allowed === undefined ? {} : { allowed }),
  };
}

/** OpenAPI 3.2 has a style for cookies of its own, whose values a handler reads as it reads those of forms. */
function givenStyle(parameter: JsonObject, where: Parameter['in']): unknown {
  const style = own(parameter, 'style');
  return where === 'cookie' && style === 'cookie' ? 'form' : style;
}

/** The style of a parameter. One that its place cannot have counts as not given. */
function styleOf(parameter: JsonObject, where: Parameter['in']): Style {
  // With "content", it is a text of that media type.
  if (own(parameter, 'schema') === undefined && own(parameter, 'content') !== undefined) {
    return { style: 'text', explode: false };
  }
  const styles = STYLES[where];
  const style = styles.find((one) => one === givenStyle(parameter, where)) ?? styles[0];
  return explodedStyle(style, own(parameter, 'explode'));
}

/** @param explode as given; by default, only forms are exploded */
export function explodedStyle(style: TextStyle, explode: unknown): Style {
  return { style, explode: typeof explode === 'boolean' ? explode : style === 'form' };
}

function difference(some: readonly Parameter[], others: readonly Parameter[]): readonly Parameter[] {
  return some.filter((parameter) => !others.includes(parameter));
}

function isParameterLocation(value: unknown): value is Parameter['in'] {
  return typeof value === 'string' && LOCATIONS.includes(value);
}
