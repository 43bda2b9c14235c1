/** Random documents of OpenAPI whose schemas have parts that the policy `validate` cannot express. */
import fc from 'fast-check';
import { anyKeywords, anyLeaf } from './random-schemas.js';

const NAMES = ['one', 'two', 'three', 'four'];
/** What other validators take, and the policy does not. */
const UNSUPPORTED = fc.constantFrom<object>(
  { pattern: '^(?=a)' },
  { pattern: '(?<!b)c' },
  { pattern: '(.)\\1' },
  { pattern: '\\Ba' },
  { format: 'idn-email' },
  { format: 'regex', maxLength: 2 },
  { patternProperties: { '^(?!a)': { type: 'integer' } }, additionalProperties: false },
  { patternProperties: { '^(?!a)': true, '^b': { type: 'string' } } },
  { enum: Array.from({ length: 5001 }, (_, at) => at - 2) },
  { dependencies: { a: ['b'] } },
  { properties: { a: { readOnly: true } }, required: ['a', 'b'] },
  { type: 'string', nullable: true },
);

/** A schema, and those that its references lead to: no reference leads back to the same value. */
export interface RandomDocument {
  readonly schema: unknown;
  readonly components: Readonly<Record<string, unknown>>;
}

/** @param prefix of the names of its components */
export function anyDocument(prefix: string): fc.Arbitrary<RandomDocument> {
  const reference = (name: string) => ({ $ref: `#/components/schemas/${prefix}${name}` });
  // Each leads to later ones only.
  const component = (at: number): fc.Arbitrary<unknown> => {
    const later = NAMES.slice(at + 1).map(reference);
    const inner: fc.Arbitrary<unknown> =
      later.length === 0
        ? fc.oneof(UNSUPPORTED, anyLeaf)
        : fc.oneof(
            { weight: 2, arbitrary: fc.constantFrom(...later) },
            { weight: 1, arbitrary: UNSUPPORTED },
            { weight: 1, arbitrary: anyLeaf },
          );
    return fc.oneof(
      { weight: 4, arbitrary: anyKeywords(inner) },
      // Of the value itself, so that it decides often.
      { weight: 1, arbitrary: UNSUPPORTED.map((one) => ({ allOf: [one] })) },
      { weight: 1, arbitrary: anyKeywords(inner).map((schema) => ({ allOf: [schema], ...later[0] })) },
    );
  };
  return fc.tuple(component(-1), ...NAMES.map((_, at) => component(at))).map(([schema, ...all]) => ({
    schema,
    components: Object.fromEntries(all.map((one, at) => [`${prefix}${NAMES[at]}`, one])),
  }));
}
