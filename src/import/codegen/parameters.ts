/** The part of a generated handler that parses parameters of path, query, headers and cookies. */
import type { Operation, Parameter } from '../openapi/document.js';
import type { Helper } from './rust-helpers.js';
import type { RustNames } from './rust-names.js';
import { letStatement, stringLiteral } from './rust-text.js';
import { separator, textType } from './rust-types.js';

/** The code that parses one parameter. */
export interface ParameterCode {
  readonly parameter: Parameter;
  readonly variable: string;
  /** Lines that define the variable. */
  readonly statements: readonly string[];
  readonly helpers: readonly Helper[];
}

/** Generated source has to stay editable by hand: further parameters, and those with longer names, are omitted. */
const MAX_PARAMETERS = 100;
const MAX_NAME_LENGTH = 256;

/** The code for the parameters of an operation, and how many of them are omitted. */
export function parameterCode(
  { parameters: all }: Operation,
  names: RustNames,
): { readonly parameters: readonly ParameterCode[]; readonly omitted: number } {
  const parameters = all
    .filter(({ name }) => name !== '' && name.length <= MAX_NAME_LENGTH)
    .slice(0, MAX_PARAMETERS)
    .map((parameter) => codeOf(parameter, names));
  return { parameters, omitted: all.length - parameters.length };
}

function codeOf(parameter: Parameter, names: RustNames): ParameterCode {
  const variable = names.unique(parameter.name);
  const name = stringLiteral(parameter.name);
  const { type, value, helpers, note } = expression(parameter, name);
  const pattern = type === null ? variable : `${variable}: ${type}`;
  const statements = [...(note ? [`    // ${note}`] : []), ...letStatement(pattern, value)];
  return { parameter, variable, statements, helpers };
}

interface Expression {
  /** Type annotation; null when rustc infers the type. */
  readonly type: string | null;
  readonly value: string;
  readonly helpers: readonly Helper[];
  /** Comment above the statement. */
  readonly note?: string;
}

function expression(parameter: Parameter, name: string): Expression {
  const { type, itemType, required, unsupportedStyle, style } = parameter;
  // In an unsupported style there may be no parameter of exactly this name.
  if (unsupportedStyle !== undefined && parameter.in !== 'path') {
    return { type: null, note: 'The raw text.', ...optionalText(parameter, name) };
  }
  if (style === 'deepObject' && parameter.in === 'query') return deepObject(parameter, name);
  if (type === 'array' && unsupportedStyle === undefined) return list(parameter, name, textType(itemType));
  const scalar = unsupportedStyle === undefined ? textType(type) : 'String';
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

/** The unparsed text, as an `Option`. */
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

/** The unparsed text; the handler answers 400 when it is missing. */
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
