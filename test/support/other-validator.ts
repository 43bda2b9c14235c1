/** Where another validator, ajv, does what the specification of JSON Schema says. */

/**
 * It counts what some keywords have looked at in another way. The tests of the specification itself are those of
 * `validate-suite.test.ts`.
 */
export function isAlike(schema: unknown): boolean {
  const text = JSON.stringify(schema);
  const differs =
    text.includes('"unevaluated') && /"(contains|if|dependentSchemas|anyOf|oneOf|not)":/.test(text);
  // Of a list that is shorter than `prefixItems` it takes `contains` to fit.
  const losesContains = text.includes('"prefixItems"') && text.includes('"contains"');
  return !differs && !losesContains;
}

/** It takes `contains` to fit a list of nothing at times. @param value as JSON */
export function isAlikeFor(schema: unknown, value: string): boolean {
  return !(value.includes('[]') && JSON.stringify(schema).includes('"contains"'));
}
