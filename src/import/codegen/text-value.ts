/** Reads values that are sent as text, in the styles of OpenAPI, with `Pairs` and `Values` of the SDK. */
import type { TextValue, ValueType } from '../openapi/document.js';
import type { RustConstants } from './rust-constants.js';
import { stringLiteral } from './rust-text.js';
import { textType } from './rust-types.js';

/** Where a value is: a local variable of type `Pairs`, or one parameter of the request. */
export type TextSource =
  | {
      readonly kind: 'pairs';
      readonly variable: string;
      /** The names of the other values there, which are no members of an object that has all the rest. */
      readonly others: readonly string[];
    }
  | { readonly kind: 'path' | 'header' };

/** The code that reads a value. */
export interface TextCode {
  readonly type: string;
  readonly expression: string;
  /** Comment above it. */
  readonly note?: string;
}

/** What a value is read as. */
type Shape = 'one' | 'list' | 'object';

const SEPARATORS = { spaceDelimited: ' ', pipeDelimited: '|' } as const;

export function textCode(value: TextValue, source: TextSource, constants: RustConstants): TextCode {
  const { name, required } = value;
  const shape = shapeOf(value);
  const isRaw = value.style === 'text' || (shape === 'one' && isComplex(value.type));
  const inner = typeWithin(shape, value);
  const type = required ? inner : `Option<${inner}>`;
  const note = isRaw ? { note: 'The raw text.' } : {};
  const allowed = value.allowed?.values.map(String);
  const isChecked = allowed !== undefined && !isRaw && shape !== 'object' && constants.reserve(allowed);
  const checked = isChecked ? `.one_of(${constants.slice(name, allowed)})?` : '';
  if (shape === 'one' && checked === '') {
    const plain = plainText(value, source, inner);
    if (plain !== undefined) return { ...plain, ...note };
  }
  const suffix = { one: '', list: '_list', object: '_object' }[shape];
  const reader = `${required ? 'required' : 'optional'}${suffix}`;
  return { type, expression: `${valuesOf(value, source, shape, constants)}${checked}.${reader}()?`, ...note };
}

/** One text that needs nothing taken apart. */
function plainText(
  { name, required, style }: TextValue,
  source: TextSource,
  inner: string,
): TextCode | undefined {
  const key = stringLiteral(name);
  const type = required ? inner : `Option<${inner}>`;
  switch (source.kind) {
    case 'pairs':
      return { type, expression: `${source.variable}.${required ? 'required' : 'optional'}(${key})?` };
    case 'path':
      if (!required || style === 'label' || style === 'matrix') return undefined;
      return { type, expression: `req.require_path_param(${key})?` };
    case 'header':
      // A text may have commas: a header that is sent twice is joined with them.
      if (inner !== 'String') return undefined;
      return required
        ? { type: '&String', expression: `req.require_header(${key})?` }
        : { type: 'Option<&String>', expression: `req.header(${key})` };
  }
}

function shapeOf({ type, itemType, style, explode }: TextValue): Shape {
  if (style === 'text') return 'one';
  if (type === 'object') return 'object';
  if (type !== 'array') return 'one';
  // The text of an object or array may contain the separator.
  const isSplit = style !== 'deepObject' && !(style === 'form' && explode);
  return isSplit && isComplex(itemType) ? 'one' : 'list';
}

function isComplex(type: ValueType): boolean {
  return type === 'object' || type === 'array';
}

function typeWithin(shape: Shape, { type, itemType, style }: TextValue): string {
  if (shape === 'object') return 'HashMap<String, String>';
  if (shape === 'list') return `Vec<${textType(itemType)}>`;
  return style === 'text' ? 'String' : textType(type);
}

/** An expression of type `Values`. */
function valuesOf(value: TextValue, source: TextSource, shape: Shape, constants: RustConstants): string {
  const key = stringLiteral(value.name);
  return source.kind === 'pairs'
    ? valuesOfPairs(value, source, shape, constants)
    : `req.${source.kind}_values(${key})${splitting(value, shape)}`;
}

function valuesOfPairs(
  { name, style, explode, memberNames }: TextValue,
  { variable, others }: Extract<TextSource, { kind: 'pairs' }>,
  shape: Shape,
  constants: RustConstants,
): string {
  const key = stringLiteral(name);
  const values = `${variable}.values(${key})`;
  if (shape === 'one') return values;
  if (style === 'deepObject') return `${variable}.deep_${shape}(${key})`;
  if (shape === 'object' && style === 'form' && explode) {
    return memberNames !== undefined && constants.reserve(memberNames)
      ? `${variable}.members(${key}, ${constants.slice(name, memberNames)})`
      : `${variable}.other_members(${key}, ${constants.slice(name, constants.reserve(others) ? others : [])})`;
  }
  if (style === 'spaceDelimited' || style === 'pipeDelimited') {
    return shape === 'list' && explode ? values : `${values}.split('${SEPARATORS[style]}')`;
  }
  return explode ? values : `${values}.split(',')`;
}

/** What takes the one text of a path parameter or header apart. */
function splitting({ style, explode }: TextValue, shape: Shape): string {
  if (style === 'label') return label(explode, shape);
  if (style === 'matrix') return matrix(explode, shape);
  if (shape === 'one') return '';
  return shape === 'object' && explode ? ".split(',').split_pairs()" : ".split(',')";
}

function label(explode: boolean, shape: Shape): string {
  if (shape === 'one') return '.label()';
  if (!explode) return '.split_label()';
  return shape === 'object' ? ".label().split('.').split_pairs()" : ".label().split('.')";
}

function matrix(explode: boolean, shape: Shape): string {
  if (shape === 'one') return '.matrix()';
  if (!explode) return ".matrix().split(',')";
  return shape === 'object' ? '.matrix_object()' : '.matrix()';
}
