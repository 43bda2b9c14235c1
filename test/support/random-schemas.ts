/** Random JSON Schemas and values, such that values often nearly fit. */
import fc from 'fast-check';

const NAMES = ['a', 'b', 'c', 'longer name', 'ü'];
const PATTERNS = [
  '^a',
  'b$',
  '^[a-c]+$',
  '^\\d{2,3}$',
  '[^a]',
  '^(a|bc)*$',
  '\\w-\\w',
  '^\\s',
  '^.$',
  '^\\p{L}+$',
];
const TYPES = ['null', 'boolean', 'integer', 'number', 'string', 'array', 'object'];

const number = fc.oneof(
  fc.integer({ min: -4, max: 12 }),
  fc.constantFrom(0.5, 1.5, -0.25, 2 ** 53, -(2 ** 40), 1e-7),
);
const text = fc.oneof(
  fc.constantFrom('', 'a', 'b', 'abc', 'aab', '12', '123', 'a-b', ' x', 'ü', '😀', 'Ж'),
  fc.string({ maxLength: 4 }),
);
const scalar = fc.oneof(fc.constant(null), fc.boolean(), number, text);
const name = fc.constantFrom(...NAMES);
const count = fc.integer({ min: 0, max: 4 });

export const anyValue: fc.Arbitrary<unknown> = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4 }),
  ),
})).value;

/** More often an object or a list of scalars, which schemas of one level nearly fit. */
export const anyNearValue: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 2, arbitrary: anyValue },
  { weight: 1, arbitrary: fc.dictionary(name, fc.integer({ min: -1, max: 4 }), { maxKeys: 2 }) },
  { weight: 1, arbitrary: fc.array(scalar, { maxLength: 3 }) },
);

const records = (schema: fc.Arbitrary<unknown>) =>
  ({
    type: fc.oneof(
      fc.constantFrom(...TYPES),
      fc.uniqueArray(fc.constantFrom(...TYPES), { minLength: 1, maxLength: 3 }),
    ),
    enum: fc.uniqueArray(anyValue, {
      minLength: 1,
      maxLength: 4,
      selector: (value) => JSON.stringify(value),
    }),
    const: anyValue,
    multipleOf: fc.constantFrom(1, 2, 3, 7),
    maximum: number,
    exclusiveMaximum: number,
    minimum: number,
    exclusiveMinimum: number,
    maxLength: count,
    minLength: count,
    pattern: fc.constantFrom(...PATTERNS),
    maxItems: count,
    minItems: count,
    uniqueItems: fc.boolean(),
    prefixItems: fc.array(schema, { minLength: 1, maxLength: 3 }),
    items: schema,
    contains: schema,
    unevaluatedItems: schema,
    maxProperties: count,
    minProperties: count,
    required: fc.uniqueArray(name, { maxLength: 2 }),
    dependentRequired: fc.dictionary(name, fc.uniqueArray(name, { maxLength: 2 }), { maxKeys: 2 }),
    dependentSchemas: fc.dictionary(name, schema, { maxKeys: 2 }),
    properties: fc.dictionary(name, schema, { maxKeys: 3 }),
    patternProperties: fc.dictionary(fc.constantFrom(...PATTERNS), schema, { maxKeys: 2 }),
    additionalProperties: schema,
    propertyNames: schema,
    unevaluatedProperties: schema,
    allOf: fc.array(schema, { minLength: 1, maxLength: 2 }),
    anyOf: fc.array(schema, { minLength: 1, maxLength: 3 }),
    oneOf: fc.array(schema, { minLength: 1, maxLength: 3 }),
    not: schema,
    $ref: fc.constantFrom('#/$defs/one', '#/$defs/other'),
  }) as const;

/** Of one level, with few keywords. */
function level(inner: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const { $ref: _, ...keywords } = records(inner);
  return withFew(keywords);
}

function withFew(keywords: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<unknown> {
  return fc
    .uniqueArray(fc.constantFrom(...Object.keys(keywords)), { minLength: 1, maxLength: 4 })
    .chain((chosen) =>
      fc.record(Object.fromEntries(chosen.map((keyword) => [keyword, keywords[keyword] ?? fc.boolean()]))),
    );
}

const leaf = fc.oneof({ weight: 1, arbitrary: fc.boolean() }, { weight: 6, arbitrary: level(fc.boolean()) });
const middle = fc.oneof({ weight: 1, arbitrary: fc.boolean() }, { weight: 6, arbitrary: level(leaf) });
// biome-ignore lint/suspicious/noThenProperty: it is a keyword
const conditional = fc.record({ if: leaf, then: leaf, else: leaf });

/** Without schemas of several levels. */
export const anyLeaf = leaf;

/** A schema with few keywords, whose schemas are given. */
export function anyKeywords(inner: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> {
  const counted = fc.record({ contains: inner, maxContains: count });
  // biome-ignore lint/suspicious/noThenProperty: it is a keyword
  const conditional = fc.record({ if: inner, then: inner, else: inner });
  const only = fc.array(inner, { minLength: 1, maxLength: 3 }).map((oneOf) => ({ oneOf }));
  const whole = fc.record({ allOf: fc.tuple(inner), unevaluatedProperties: fc.boolean() });
  return fc.oneof({ weight: 3, arbitrary: level(inner) }, counted, conditional, only, whole);
}

/** Schemas with references, which do not lead back to the same value. */
export const anySchema: fc.Arbitrary<unknown> = fc
  .tuple(
    withFew(
      records(
        fc.oneof(
          middle,
          leaf,
          conditional,
          fc.constantFrom({ $ref: '#/$defs/one' }, { $ref: '#/$defs/other' }),
        ),
      ),
    ),
    middle,
    leaf,
    fc.boolean(),
    conditional,
  )
  .map(([schema, one, other, hasCondition, condition]) => ({
    ...(schema as object),
    ...(hasCondition && condition),
    $defs: { one, other },
  }));
