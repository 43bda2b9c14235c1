/** The body an operation takes. */
import type { Warn } from '../warnings.js';
import type { FormField, RequestBody } from './document.js';
import { formFields } from './form-fields.js';
import { entriesOf, isObject, type JsonObject, own, shortened, specError } from './json.js';
import type { References } from './references.js';
import type { Schemas } from './schemas.js';

/** A handler takes so many members apart; larger objects it gets as a whole. */
const MAX_MEMBERS = 200;
const MAX_MEDIA_TYPE_LENGTH = 255;

/** `application/json`, `application/problem+json`, with or without parameters. */
const JSON_TYPE = /^application\/(?:[^;\s]+\+)?json\s*(?:;|$)/i;

const FORM_TYPE = /^\s*(multipart\/form-data|application\/x-www-form-urlencoded)\s*(?:;|$)/i;

export class RequestBodies {
  constructor(
    private readonly references: References,
    private readonly schemas: Schemas,
  ) {}

  /**
   * Reads the request body of one operation; null when it has none.
   * @param label the operation, for messages
   * @throws AppError invalid_spec
   */
  read(label: string, operation: JsonObject, warn: Warn): RequestBody | null {
    const place = `${label}: requestBody`;
    const body = this.references.resolve(own(operation, 'requestBody'), place);
    if (!isObject(body)) return null;
    const offered = entriesOf(own(body, 'content'));
    const [mediaType, media] = offered.find(([type]) => JSON_TYPE.test(type)) ?? offered[0] ?? [];
    if (mediaType === undefined) return null;
    if (mediaType.trim() === '' || mediaType.length > MAX_MEDIA_TYPE_LENGTH) {
      throw specError(place, `"${shortened(mediaType)}" is no media type`);
    }
    const required = own(body, 'required') === true;
    const described = this.references.resolve(media, place);
    if (!JSON_TYPE.test(mediaType)) {
      const fields = isObject(described) ? this.fieldsOf(label, mediaType, described, warn) : [];
      return { required, mediaType, type: 'any', members: [], ...(fields.length > 0 ? { fields } : {}) };
    }
    const schema = isObject(described) ? own(described, 'schema') : undefined;
    const type = this.schemas.typeOf(schema);
    const members = type === 'object' ? this.schemas.membersOf(schema) : [];
    if (members.length <= MAX_MEMBERS) return { required, mediaType, type, members };
    warn(
      'bodies',
      `${label}: the body has ${members.length} members, more than the ${MAX_MEMBERS} that a handler takes apart; it gets the object as it is`,
    );
    return { required, mediaType, type, members: [] };
  }

  /** The fields of a form; none of what is no form. */
  private fieldsOf(label: string, mediaType: string, media: JsonObject, warn: Warn): readonly FormField[] {
    const [, kind] = FORM_TYPE.exec(mediaType) ?? [];
    if (kind === undefined) return [];
    const count = this.schemas.membersOf(own(media, 'schema')).length;
    if (count > MAX_MEMBERS) {
      warn(
        'bodies',
        `${label}: the form has ${count} fields, more than the ${MAX_MEMBERS} that a handler takes apart; it gets the form as it is`,
      );
      return [];
    }
    const fields = formFields(this.schemas, media, kind.toLowerCase() === 'multipart/form-data');
    for (const { name, rawStyle } of fields) {
      if (rawStyle === undefined) continue;
      warn(
        'styles',
        `${label}: the field "${shortened(name)}" of the form, in the style "${shortened(rawStyle)}", is not taken apart; the handler gets its text`,
      );
    }
    return fields;
  }
}
