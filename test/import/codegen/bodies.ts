/** Request bodies of operations, as an OpenAPI document may describe them. */
import type { AllowedValues, FormField, Member, RequestBody } from '../../../src/import/openapi/document.js';

export function onlyTexts(...values: string[]): AllowedValues {
  return { type: 'string', values };
}

export function onlyIntegers(...values: number[]): AllowedValues {
  return { type: 'integer', values };
}

export function member(name: string, given: Partial<Member> = {}): Member {
  return { name, required: true, nullable: false, type: 'string', ...given };
}

export function jsonBody(members: readonly Member[], given: Partial<RequestBody> = {}): RequestBody {
  return { required: true, mediaType: 'application/json', type: 'object', members, ...given };
}

export function field(name: string, given: Partial<FormField> = {}): FormField {
  return {
    name,
    required: true,
    type: 'string',
    itemType: 'any',
    style: 'form',
    explode: true,
    isFile: false,
    ...given,
  };
}

export const MULTIPART = 'multipart/form-data';
export const URLENCODED = 'application/x-www-form-urlencoded';

export function formBody(
  mediaType: string,
  fields: readonly FormField[],
  given: Partial<RequestBody> = {},
): RequestBody {
  return { required: true, mediaType, type: 'any', members: [], fields, ...given };
}
