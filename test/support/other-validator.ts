/** Where another validator, ajv, does what the specification of JSON Schema says. */

/**
 * It counts what some keywords have looked at in another way. The tests of the specification itself are those of
 * `validate-suite.test.ts`.
 */
export function isAlike(schema: unknown): boolean {
  const text = JSON.stringify(schema);
  const differs =
    text.includes('"unevaluated') && /"(contains|if|dependentSchemas|anyOf|oneOf|not)":/.test(text);
  return !differs;
}

/** It takes `contains` to fit a list of nothing at times. @param value as JSON */
export function isAlikeFor(schema: unknown, value: string): boolean {
  return !(value.includes('[]') && JSON.stringify(schema).includes('"contains"'));
}
