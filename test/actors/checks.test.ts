import { expect } from 'chai';
import fc from 'fast-check';
import { checkOf } from '../../src/actors/checks.js';
import { type TSchema, Type } from '../../src/actors/schema.js';
import { checkOf as checkByLibrary } from '../../src/model/schema-check.js';

/** A schema, and values that fit it. */
interface Example {
  readonly schema: TSchema;
  readonly values: fc.Arbitrary<unknown>;
}

const length = fc.nat({ max: 4 });

const leaf: fc.Arbitrary<Example> = fc.oneof(
  fc
    .record(
      { minLength: length, maxLength: length, pattern: fc.constantFrom('^[ -~]*$', 'a') },
      { requiredKeys: [] },
    )
    .map((options) => ({
      schema: Type.String(options),
      values: fc.string({ unit: 'grapheme', maxLength: 5 }),
    })),
  fc.constant({
    schema: Type.String({ format: 'email-address' }),
    values: fc.oneof(fc.emailAddress(), fc.string()),
  }),
  fc.constant({
    schema: Type.String({ refine: (text: string) => (text === 'a' ? 'must not be a' : undefined) }),
    values: fc.constantFrom('a', 'b'),
  }),
  fc
    .record(
      { minimum: fc.integer({ min: -2, max: 2 }), maximum: fc.integer({ min: -2, max: 2 }) },
      { requiredKeys: [] },
    )
    .map((options) => ({
      schema: Type.Integer(options),
      values: fc.oneof(fc.integer({ min: -3, max: 3 }), fc.double()),
    })),
  fc.constant({ schema: Type.Boolean(), values: fc.boolean() }),
  fc.constant({ schema: Type.Unknown(), values: fc.jsonValue() }),
  fc.constant({ schema: Type.Unsafe({ enum: ['x', 'y'] }), values: fc.constantFrom('x', 'y', 'z') }),
);

const example = fc.letrec<{ any: Example; array: Example; object: Example }>((tie) => ({
  any: fc.oneof({ depthSize: 'small' }, leaf, tie('array'), tie('object')),
  array: fc
    .record({ of: tie('any'), maxItems: fc.option(length, { nil: undefined }) })
    .map(({ of, maxItems }) => ({
      schema: Type.Array(of.schema, maxItems === undefined ? {} : { maxItems }),
      values: fc.array(of.values, { maxLength: 3 }),
    })),
  object: fc
    .record({
      members: fc.dictionary(
        fc.constantFrom('a', 'b/c', 'd~e'),
        fc.record({ of: tie('any'), is: fc.nat({ max: 3 }) }),
      ),
      closed: fc.boolean(),
    })
    .map(({ members, closed }) => {
      const entries = Object.entries(members).map(
        ([name, { of, is }]) => [name, memberOf(of.schema, is)] as const,
      );
      const values = Object.entries(members).map(([name, { of }]) => [name, of.values] as const);
      return {
        schema: Type.Object(Object.fromEntries(entries), closed ? { additionalProperties: false } : {}),
        values: fc
          .tuple(
            fc.record(Object.fromEntries(values), { requiredKeys: [] }),
            fc.constantFrom({}, {}, { other: 1 }),
          )
          .map(([object, more]) => ({ ...object, ...more })),
      };
    }),
})).any;

/** Required, optional, optional or null, or with a default. */
function memberOf(schema: TSchema, is: number): TSchema {
  if (is === 0) return schema;
  if (is === 1) return Type.Optional(schema);
  if (is === 2) return Type.Optional(Type.Unsafe({ ...schema, ...(schema['type'] && { nullable: true }) }));
  return Type.Unsafe({ ...schema, default: [] });
}

describe('checks of arguments', () => {
  it('checks of arguments report the same errors and set the same defaults as the library for schemas', () => {
    const cases = example.chain(({ schema, values }) =>
      fc.tuple(fc.constant(schema), fc.oneof({ weight: 4, arbitrary: values }, fc.jsonValue())),
    );
    fc.assert(
      fc.property(cases, ([schema, value]) => {
        const [ours, theirs] = [structuredClone(value), structuredClone(value)];
        expect(checkOf(schema)(ours)).to.deep.equal(checkByLibrary(schema)(theirs));
        expect(ours).to.deep.equal(theirs);
      }),
      { numRuns: 2_000 },
    );
  });

  it('checks of arguments refuse a schema with a keyword that they do not support', () => {
    expect(() => checkOf(Type.String({ contentEncoding: 'base64' }))).to.throw('contentEncoding');
  });
});
