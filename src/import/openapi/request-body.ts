/** The request bodies of operations. */

import { isObject, type JsonObject } from '../../util/json-object.js';
import type { Warn } from '../warnings.js';
import type { FormField, RequestBody, TextStyle, ValueType } from './document.js';
import { entriesOf, own, shortened, specError } from './json.js';
import { explodedStyle, type Style, textValue } from './parameters.js';
import type { References } from './references.js';
import type { Schemas } from './schemas.js';

/** Most members or fields that a generated handler parses; it gets larger bodies as a whole. */
const MAX_MEMBERS = 200;
const MAX_MEDIA_TYPE_LENGTH = 255;

/** `application/json`, `application/problem+json`, with or without parameters. */
const JSON_TYPE = /^application\/(?:[^;\s]+\+)?json\s*(?:;|$)/i;
const FORM_TYPE = /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\s*(?:;|$)/i;
/** Content types of form fields that are text. A field with another content type is a file. */
const TEXT_TYPE = /^text\/|[/+](?:json|xml|x-www-form-urlencoded)\b/i;

export class RequestBodies {
  readonly #references: References;
  readonly #schemas: Schemas;

  constructor(references: References, schemas: Schemas) {
    this.#references = references;
    this.#schemas = schemas;
  }

  /**
   * The request body of one operation; null when it has none.
   * @param label the operation, for messages
   * @throws SpecError
   */
  read(label: string, operation: JsonObject, warn: Warn): RequestBody | null {
    const location = `${label}: requestBody`;
    const body = this.#references.resolve(own(operation, 'requestBody'), location);
    if (body === undefined || body === null) return null;
    const offered = entriesOf(isObject(body) ? own(body, 'content') : undefined);
    const [mediaType, media] = offered.find(([type]) => JSON_TYPE.test(type)) ?? offered[0] ?? [];
    if (!isObject(body) || mediaType === undefined) {
      throw specError(location, 'is not a request body: it needs "content" with a media type');
    }
    if (mediaType.trim() === '' || mediaType.length > MAX_MEDIA_TYPE_LENGTH) {
      throw specError(location, `"${shortened(mediaType)}" is not a media type`);
    }
    const required = own(body, 'required') === true;
    const described = this.#references.find(media);
    if (!JSON_TYPE.test(mediaType)) {
      const fields = isObject(described) ? this.#formFields(label, mediaType, described, warn) : [];
      return { required, mediaType, type: 'any', members: [], ...(fields.length > 0 ? { fields } : {}) };
    }
    const schema = isObject(described) ? own(described, 'schema') : undefined;
    const type = this.#schemas.typeOf(schema);
    const members = type === 'object' ? this.#schemas.membersOf(schema) : [];
    if (members.length <= MAX_MEMBERS) return { required, mediaType, type, members };
    warn(
      'bodies',
      `${label}: the body has ${members.length} members, more than the ${MAX_MEMBERS} that a handler parses; it gets the object as a whole`,
    );
    return { required, mediaType, type, members: [] };
  }

  /** The described fields of a form; none for other media types. */
  #formFields(label: string, mediaType: string, media: JsonObject, warn: Warn): readonly FormField[] {
    const [, kind] = FORM_TYPE.exec(mediaType) ?? [];
    if (kind === undefined) return [];
    const isMultipart = kind.toLowerCase() === 'multipart/form-data';
    const schema = own(media, 'schema');
    const members = this.#schemas.membersOf(schema);
    if (members.length > MAX_MEMBERS) {
      warn(
        'bodies',
        `${label}: the form has ${members.length} fields, more than the ${MAX_MEMBERS} that a handler parses; it gets the form as a whole`,
      );
      return [];
    }
    const properties = this.#schemas.propertiesOf(schema);
    return members.map(({ name, required, type }): FormField => {
      const property = properties.get(name);
      const encoding = encodingOf(media, name);
      return {
        name,
        required,
        ...textValue(this.#schemas, property, fieldStyle(encoding, type)),
        isFile: isMultipart && this.#isFile(property, encoding),
      };
    });
  }

  #isFile(property: unknown, encoding: JsonObject): boolean {
    if (this.#schemas.isBinary(property)) return true;
    const contentType = own(encoding, 'contentType');
    return typeof contentType === 'string' && !TEXT_TYPE.test(contentType);
  }
}

function encodingOf(media: JsonObject, name: string): JsonObject {
  const encodings = own(media, 'encoding');
  const encoding = isObject(encodings) ? own(encodings, name) : undefined;
  return isObject(encoding) ? encoding : {};
}

/** Styles of fields. OpenAPI 3.0 has none in multipart; a document that names one there means it as 3.1 does. */
const FIELD_STYLES: readonly TextStyle[] = ['form', 'spaceDelimited', 'pipeDelimited', 'deepObject'];

function fieldStyle(encoding: JsonObject, type: ValueType): Style {
  const style = FIELD_STYLES.find((one) => one === own(encoding, 'style'));
  const explode = own(encoding, 'explode');
  if (style !== undefined || typeof explode === 'boolean') return explodedStyle(style ?? 'form', explode);
  // Without a style, objects are sent as JSON, and lists item by item.
  return { style: type === 'object' ? 'text' : 'form', explode: true };
}
