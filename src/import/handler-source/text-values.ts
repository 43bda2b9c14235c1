/** Rust types of values that arrive as text: parameters, and fields of forms. */
import type { TextStyle, ValueType } from '../openapi/document.js';

/** What is not said to be a number or a boolean is text. */
export function textType(type: ValueType): string {
  switch (type) {
    case 'integer':
      return 'i64';
    case 'number':
      return 'f64';
    case 'boolean':
      return 'bool';
    default:
      return 'String';
  }
}

/** What stands between the items of a list, as a literal of Rust. */
export function separator(style: TextStyle | undefined): string {
  switch (style) {
    case 'spaceDelimited':
      return "' '";
    case 'pipeDelimited':
      return "'|'";
    default:
      return "','";
  }
}
