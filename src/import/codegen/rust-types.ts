/** Rust types for values described in a document. */
import type { ValueType } from '../openapi/document.js';

/**
 * Type of a value that is sent as text: a parameter or a form field. Anything but a number or a boolean is a string.
 */
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

/** Type of a value that is sent as JSON. */
export function jsonType(type: ValueType): string {
  switch (type) {
    case 'array':
      return 'Vec<JsonValue>';
    case 'object':
      return 'HashMap<String, JsonValue>';
    case 'any':
      return 'JsonValue';
    default:
      return textType(type);
  }
}
