/** How values of several parts are written as text (OpenAPI: style, explode). */
import type { TextStyle, ValueType } from './document.js';

/** What a parameter, or a field of a form, has of it. */
export interface Styled {
  readonly style?: TextStyle;
  readonly rawStyle?: string;
}

/**
 * How a handler takes a value apart.
 * @param style as the document has it, or what OpenAPI says for a document that does not
 * @param isRepeatable whether a handler gets all values of one name, as it does in a form but not in a query
 */
export function styleOf(style: string, explode: unknown, type: ValueType, isRepeatable = false): Styled {
  if (type === 'object' && style === 'deepObject') return { style };
  if (type === 'object' || !TAKEN_APART.includes(style)) return { rawStyle: style };
  const isExploded = explode === true || (explode !== false && style === 'form');
  if (type !== 'array') return {};
  if (isExploded) return isRepeatable ? { style: 'repeated' } : {};
  return style === 'spaceDelimited' || style === 'pipeDelimited' ? { style } : {};
}

/** Of lists and single values. */
const TAKEN_APART: readonly string[] = ['form', 'simple', 'spaceDelimited', 'pipeDelimited'];
