/** The gateway agrees with another validator on random schemas and values, and on places of what is wrong. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { isAlike, isAlikeFor } from '../../support/other-validator.js';
import { anySchema, anyValue } from '../../support/random-schemas.js';
import { type SchemaChecks, startSchemaChecks } from '../../support/schema-checks.js';

const SCHEMAS = 400;
const VALUES = 10;

/** Undefined where the other validator fails: it can lose what `unevaluatedProperties` has counted. */
function outcome(validate: ValidateFunction, value: string): boolean | undefined {
  try {
    return validate(JSON.parse(value)) as boolean;
  } catch (thrown) {
    if (thrown instanceof TypeError) return undefined;
    throw thrown;
  }
}

describe('the policy validate and another validator', function () {
  this.timeout(300_000);
  let checks: SchemaChecks;
  before(async () => {
    checks = await startSchemaChecks();
  });
  after(() => checks?.close());

  it('agrees with another validator on random schemas and values', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const ajv = () => new Ajv2020({ strict: false, logger: false, validateFormats: false });
    // As they are sent: the other validator compares prototypes, too.
    const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
    const schemas = fc.sample(anySchema, { numRuns: SCHEMAS, seed }).map(plain).filter(isAlike);
    const values = fc.sample(anyValue, { numRuns: SCHEMAS * VALUES, seed });
    const checked = schemas.map((schema, at) => ({
      schema,
      values: values
        .slice(at * VALUES, (at + 1) * VALUES)
        .map((value) => JSON.stringify(value))
        .filter((value) => isAlikeFor(schema, value)),
    }));
    const verdicts = await checks.verdicts(checked);
    let fitting = 0;
    let unanswered = 0;
    const differences = checked.flatMap(({ schema, values }, at) => {
      const validate = ajv().compile(schema as object);
      return values.flatMap((value, index) => {
        const expected = outcome(validate, value);
        if (expected === undefined) unanswered++;
        if (expected === undefined) return [];
        fitting += Number(expected);
        return verdicts[at]?.[index] === expected
          ? []
          : [JSON.stringify({ seed, schema, value: JSON.parse(value), expected })];
      });
    });
    expect(differences).to.deep.equal([]);
    expect(unanswered).to.be.below(SCHEMAS);
    // Both outcomes are common.
    expect(fitting).to.be.within(SCHEMAS, (schemas.length - SCHEMAS / 10) * VALUES);
  });
});
