/** The fields of a form that a schema describes. */
import type { FormField, ValueType } from './document.js';
import { isObject, type JsonObject, own } from './json.js';
import type { Schemas } from './schemas.js';
import { type Styled, styleOf } from './styles.js';

/** What a schema does not say to be binary is a file if it is sent as another type than these. */
const TEXT_TYPE = /^text\/|[/+](?:json|xml|x-www-form-urlencoded)\b/i;

/**
 * Reads the fields of a form.
 * @param media the media type object, with the schema and how its members are encoded
 */
export function formFields(schemas: Schemas, media: JsonObject, isMultipart: boolean): readonly FormField[] {
  const schema = own(media, 'schema');
  const properties = schemas.propertiesOf(schema);
  return schemas.membersOf(schema).map(({ name, required, type }) => {
    const property = properties.get(name);
    const encoding = encodingOf(media, name);
    return {
      name,
      required,
      type,
      itemType: schemas.itemTypeOf(property),
      isFile: isMultipart && isFile(schemas, property, encoding),
      ...(isMultipart ? {} : urlencodedStyle(encoding, type)),
    };
  });
}

function encodingOf(media: JsonObject, name: string): JsonObject {
  const encodings = own(media, 'encoding');
  const encoding = isObject(encodings) ? own(encodings, name) : undefined;
  return isObject(encoding) ? encoding : {};
}

function isFile(schemas: Schemas, property: unknown, encoding: JsonObject): boolean {
  if (schemas.isBinary(property)) return true;
  const contentType = own(encoding, 'contentType');
  return typeof contentType === 'string' && !TEXT_TYPE.test(contentType);
}

function urlencodedStyle(encoding: JsonObject, type: ValueType): Styled {
  const style = own(encoding, 'style');
  // Without a style, objects are sent as JSON, in one piece.
  if (type === 'object' && style === undefined) return {};
  return styleOf(typeof style === 'string' ? style : 'form', own(encoding, 'explode'), type, true);
}
