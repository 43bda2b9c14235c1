/** What an import makes of documents refuses nothing that they allow, whatever of them cannot be expressed. */
import { expect } from 'chai';
import { imported, refusesNothingAllowed, VERSIONS } from '../../support/imported-validation.js';
import { type SchemaChecks, startSchemaChecks } from '../../support/schema-checks.js';

describe('the policy validate of documents', function () {
  this.timeout(300_000);
  let checks: SchemaChecks;
  before(async () => {
    checks = await startSchemaChecks();
  });
  after(() => checks?.close());

  // With more of them in test/torture.
  for (const version of VERSIONS)
    it(`refuses nothing that a document of OpenAPI ${version} allows, whatever of it is left out`, () =>
      refusesNothingAllowed(checks, version, 150));

  it('accepts values of schemas whose unsupported patterns or invalid counts are left out', async () => {
    const examples: readonly (readonly [object, readonly unknown[]])[] = [
      [
        { patternProperties: { '^(?=a)': { type: 'integer' } }, additionalProperties: false },
        [{ a: 1 }, { ab: 1 }],
      ],
      [
        { patternProperties: { '^(?!a)': true, '^b': { type: 'string' } }, additionalProperties: false },
        [{ c: 1 }, { b: 'b' }],
      ],
      // Not even JSON Schema allows these; what cannot be read allows everything.
      [{ contains: { type: 'integer' }, minContains: 'two' }, [[], ['a']]],
      [{ contains: { type: 'integer' }, minContains: -1 }, [[], ['a']]],
    ];
    const all = await Promise.all(
      examples.map(async ([schema, values]) => ({
        ...(await imported({ schema, components: {} }, '3.1.0')),
        values: values.map((value) => JSON.stringify(value)),
      })),
    );
    const wrong = (await checks.verdicts(all)).flatMap((verdicts, at) =>
      verdicts.includes(false) ? [JSON.stringify(examples[at])] : [],
    );
    expect(wrong).to.deep.equal([]);
  });
});
