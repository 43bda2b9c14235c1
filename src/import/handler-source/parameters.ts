/** The part of a generated handler that takes path, query, headers and cookies apart. */
import type { Operation, Parameter } from '../openapi/document.js';
import type { Helper } from './helpers.js';
import type { RustNames } from './rust-names.js';
import { letStatement, stringLiteral } from './rust-text.js';
import { separator, textType } from './text-values.js';

/** A parameter in a handler. */
export interface ReadParameter {
  readonly parameter: Parameter;
  readonly variable: string;
  /** Lines that define the variable. */
  readonly statements: readonly string[];
  readonly helpers: readonly Helper[];
}

/** More of them, or longer names, make no sense in a source that a person goes on with. */
const MAX_PARAMETERS = 100;
const MAX_NAME_LENGTH = 256;

/** The parameters that a handler reads, and how many it leaves out. */
export function readParameters(
  operation: Operation,
  names: RustNames,
): { readonly read: readonly ReadParameter[]; readonly leftOut: number } {
  const { parameters } = operation;
  const fit = parameters
    .filter(({ name }) => name !== '' && name.length <= MAX_NAME_LENGTH)
    .slice(0, MAX_PARAMETERS);
  return { read: fit.map((parameter) => read(parameter, names)), leftOut: parameters.length - fit.length };
}

function read(parameter: Parameter, names: RustNames): ReadParameter {
  const variable = names.give(parameter.name);
  const name = stringLiteral(parameter.name);
  const { type, value, helpers, remark } = expression(parameter, name);
  const pattern = type === null ? variable : `${variable}: ${type}`;
  const statements = [...(remark ? [`    // ${remark}`] : []), ...letStatement(pattern, value)];
  return { parameter, variable, statements, helpers };
}

interface Expression {
  /** null when the compiler knows it. */
  readonly type: string | null;
  readonly value: string;
  readonly helpers: readonly Helper[];
  /** What its reader should know. */
  readonly remark?: string;
}

function expression(parameter: Parameter, name: string): Expression {
  const { type, itemType, required, rawStyle, style } = parameter;
  // Of such a value there need be nothing under its own name.
  if (rawStyle !== undefined && parameter.in !== 'path') {
    return { type: null, remark: 'Its text, which is not taken apart.', ...optionalText(parameter, name) };
  }
  if (style === 'deepObject' && parameter.in === 'query') return deepObject(parameter, name);
  if (type === 'array' && rawStyle === undefined) return list(parameter, name, textType(itemType));
  const scalar = rawStyle === undefined ? textType(type) : 'String';
  if (required) return requiredScalar(parameter, name, scalar);
  const text = optionalText(parameter, name);
  if (scalar === 'String') return { type: null, ...text };
  const reference = parameter.in === 'cookie' ? `${text.value}.as_ref()` : text.value;
  return {
    type: `Option<${scalar}>`,
    value: `optional(${name}, ${reference})?`,
    helpers: [...text.helpers, 'optional'],
  };
}

function requiredScalar(parameter: Parameter, name: string, type: string): Expression {
  switch (parameter.in) {
    case 'path':
    case 'query':
      return { type, value: `req.require_${parameter.in}_param(${name})?`, helpers: [] };
    default: {
      const text = requiredText(parameter, name);
      if (type === 'String') return { type: null, ...text };
      const reference = parameter.in === 'cookie' ? `&${text.value}` : text.value;
      return { type, value: `parse(${name}, ${reference})?`, helpers: [...text.helpers, 'parse'] };
    }
  }
}

function list(parameter: Parameter, name: string, itemType: string): Expression {
  const type = `Vec<${itemType}>`;
  const between = separator(parameter.style);
  if (parameter.required) {
    const text = requiredText(parameter, name);
    const reference = parameter.in === 'header' ? text.value : `&${text.value}`;
    return { type, value: `list(${name}, ${reference}, ${between})?`, helpers: [...text.helpers, 'list'] };
  }
  const text = optionalText(parameter, name);
  const reference = parameter.in === 'cookie' ? '&text' : 'text';
  const items = `|text| list(${name}, ${reference}, ${between})`;
  return {
    type: `Option<${type}>`,
    value: `${text.value}.map(${items}).transpose()?`,
    helpers: [...text.helpers, 'list'],
  };
}

/** The members of `name[key]=value`. */
function deepObject({ required }: Parameter, name: string): Expression {
  const value = `deep_object(${name}, &req.query)`;
  return required
    ? { type: null, value: `require(${name}, ${value})?`, helpers: ['deep_object', 'require'] }
    : { type: null, value, helpers: ['deep_object'] };
}

type Text = Pick<Expression, 'value' | 'helpers'>;

/** An `Option` of the text as it came. */
function optionalText(parameter: Parameter, name: string): Text {
  switch (parameter.in) {
    case 'path':
    case 'query':
      return { value: `req.${parameter.in}_param(${name})`, helpers: [] };
    case 'header':
      return { value: `req.header(${name})`, helpers: [] };
    case 'cookie':
      return { value: `cookie(&req, ${name})`, helpers: ['cookie'] };
  }
}

/** The text as it came; the handler fails without it. */
function requiredText(parameter: Parameter, name: string): Text {
  switch (parameter.in) {
    case 'path':
    case 'query':
      return { value: `req.require_${parameter.in}_param::<String>(${name})?`, helpers: [] };
    case 'header':
      return { value: `req.require_header(${name})?`, helpers: [] };
    case 'cookie':
      return { value: `require_cookie(&req, ${name})?`, helpers: ['require_cookie'] };
  }
}
