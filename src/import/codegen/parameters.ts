/** The part of a generated handler that parses parameters of path, query, headers and cookies. */
import type { Operation, Parameter } from '../openapi/document.js';
import type { RustConstants } from './rust-constants.js';
import type { RustNames } from './rust-names.js';
import { letStatement } from './rust-text.js';
import { type TextSource, textCode } from './text-value.js';

/** The code that parses one parameter. */
export interface ParameterCode {
  readonly parameter: Parameter;
  readonly variable: string;
  readonly type: string;
  /** Lines that define the variable. */
  readonly statements: readonly string[];
}

/** The code that parses all parameters of an operation. */
export interface ParametersCode {
  /** Lines that define what the parameters are taken from. */
  readonly sources: readonly string[];
  readonly parameters: readonly ParameterCode[];
  readonly omitted: number;
}

/** Generated source has to stay editable by hand: further parameters, and those with longer names, are omitted. */
const MAX_PARAMETERS = 100;
const MAX_NAME_LENGTH = 256;

/** The variables of type `Pairs` that parameters are taken from. */
export const PAIRS = { query: 'query', cookie: 'cookies' } as const;

export function parameterCode(
  { parameters: all }: Operation,
  names: RustNames,
  constants: RustConstants,
): ParametersCode {
  const chosen = all
    .filter(({ name }) => name !== '' && name.length <= MAX_NAME_LENGTH)
    .slice(0, MAX_PARAMETERS);
  const locations = new Set(chosen.map((parameter) => parameter.in));
  return {
    sources: [
      ...(locations.has('query') ? [`    let ${PAIRS.query} = req.query_pairs();`] : []),
      ...(locations.has('cookie') ? [`    let ${PAIRS.cookie} = req.cookie_pairs();`] : []),
    ],
    parameters: chosen.map((parameter) => codeOf(parameter, all, names, constants)),
    omitted: all.length - chosen.length,
  };
}

function codeOf(
  parameter: Parameter,
  all: readonly Parameter[],
  names: RustNames,
  constants: RustConstants,
): ParameterCode {
  const variable = names.unique(parameter.name);
  const { type, expression, note } = textCode(parameter, sourceOf(parameter, all), constants);
  const statements = [
    ...(note === undefined ? [] : [`    // ${note}`]),
    ...letStatement(`${variable}: ${type}`, expression),
  ];
  return { parameter, variable, type, statements };
}

function sourceOf({ in: where, name }: Parameter, all: readonly Parameter[]): TextSource {
  if (where === 'path' || where === 'header') return { kind: where };
  const others = all.filter((other) => other.in === where && other.name !== name);
  return { kind: 'pairs', variable: PAIRS[where], others: others.map((other) => other.name) };
}
