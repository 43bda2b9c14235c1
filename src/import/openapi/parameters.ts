/** The parameters of an operation: its own, and those of its path item that it does not override. */
import type { Warn } from '../warnings.js';
import type { Parameter, ValueType } from './document.js';
import { isObject, itemsOf, type JsonObject, own, shortened, specError } from './json.js';
import { pathParameters } from './path-parameters.js';
import type { References } from './references.js';
import type { Schemas } from './schemas.js';
import { type Styled, styleOf } from './styles.js';

const PLACES: readonly string[] = ['path', 'query', 'header', 'cookie'];
/** The specification says that a parameter of these names is to be ignored: other parts of the document describe them. */
const IGNORED_HEADERS = ['accept', 'content-type', 'authorization'];

export class Parameters {
  /** Operations of one path item have its list in common. */
  private readonly lists = new Map<readonly unknown[], ReadonlyMap<string, Parameter>>();

  constructor(
    private readonly references: References,
    private readonly schemas: Schemas,
  ) {}

  /**
   * Reads the parameters of one operation.
   * @param label the operation, for messages
   * @param warn is told what the document says wrongly of the path's parameters
   * @throws AppError invalid_spec
   */
  read(
    label: string,
    path: string,
    item: JsonObject,
    operation: JsonObject,
    warn: Warn,
  ): readonly Parameter[] {
    const merged = [...new Map([...this.list(item, label), ...this.list(operation, label)]).values()];
    const described = merged.filter((parameter) => parameter.in === 'path');
    const inPath = pathParameters(path, described);
    for (const { name } of leftOut(described, inPath)) {
      warn(
        'parameters',
        `${label}: the path parameter "${shortened(name)}" is left out: the path does not have it`,
      );
    }
    for (const { name } of leftOut(inPath, described)) {
      warn(
        'parameters',
        `${label}: the path parameter "${shortened(name)}" is not described; it is taken for a string`,
      );
    }
    const parameters = [...inPath, ...merged.filter((parameter) => parameter.in !== 'path')];
    for (const parameter of parameters) {
      if (parameter.rawStyle !== undefined) warn('styles', `${label}: ${notTakenApart(parameter)}`);
    }
    return parameters;
  }

  /** The list of an operation or a path item, by what identifies a parameter. */
  private list(holder: JsonObject, label: string): ReadonlyMap<string, Parameter> {
    const items = itemsOf(own(holder, 'parameters'));
    const list = this.lists.get(items) ?? this.readList(items, label);
    this.lists.set(items, list);
    return list;
  }

  private readList(items: readonly unknown[], label: string): ReadonlyMap<string, Parameter> {
    const found = new Map<string, Parameter>();
    items.forEach((item, at) => {
      const place = `${label}: parameters/${at}`;
      const parameter = this.parse(this.references.resolve(item, place), place);
      if (parameter.in === 'header' && IGNORED_HEADERS.includes(parameter.name.toLowerCase())) return;
      // Names of headers are the same in any case.
      const name = parameter.in === 'header' ? parameter.name.toLowerCase() : parameter.name;
      const key = `${parameter.in} ${name}`;
      if (found.has(key)) {
        throw specError(place, `a second ${parameter.in} parameter "${shortened(name)}"; keep one of them`);
      }
      found.set(key, parameter);
    });
    return found;
  }

  private parse(value: unknown, place: string): Parameter {
    const parameter = isObject(value) ? value : {};
    const name = own(parameter, 'name');
    const where = own(parameter, 'in');
    if (typeof name !== 'string' || name === '' || !isPlace(where)) {
      throw specError(place, `is no parameter: it needs a "name", and "in" as one of ${PLACES.join(', ')}`);
    }
    const schema = own(parameter, 'schema');
    const type = this.schemas.typeOf(schema);
    return {
      name,
      in: where,
      required: where === 'path' || own(parameter, 'required') === true,
      type,
      itemType: this.schemas.itemTypeOf(schema),
      ...(schema === undefined ? {} : parameterStyle(parameter, where, type)),
    };
  }
}

function notTakenApart({ in: where, name, type, rawStyle = '' }: Parameter): string {
  const value = type === 'object' ? 'an object in the style' : 'in the style';
  return `the ${where} parameter "${shortened(name)}", ${value} "${shortened(rawStyle)}", is not taken apart; the handler gets its text`;
}

function parameterStyle(parameter: JsonObject, where: Parameter['in'], type: ValueType): Styled {
  const style = own(parameter, 'style');
  const usual = where === 'query' || where === 'cookie' ? 'form' : 'simple';
  // Elsewhere than in a query there are no names that it could be in.
  if (style === 'deepObject' && where !== 'query') return { rawStyle: style };
  return styleOf(typeof style === 'string' ? style : usual, own(parameter, 'explode'), type);
}

/** Those that are not among the others. */
function leftOut(some: readonly Parameter[], others: readonly Parameter[]): readonly Parameter[] {
  return some.filter((parameter) => !others.includes(parameter));
}

function isPlace(value: unknown): value is Parameter['in'] {
  return typeof value === 'string' && PLACES.includes(value);
}
