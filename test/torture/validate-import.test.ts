/** Imports of more random documents than those of the everyday suite. */
import { refusesNothingAllowed, VERSIONS } from '../support/imported-validation.js';
import { type SchemaChecks, startSchemaChecks } from '../support/schema-checks.js';

describe('the policy validate of many documents', function () {
  this.timeout(300_000);
  let checks: SchemaChecks;
  before(async () => {
    checks = await startSchemaChecks();
  });
  after(() => checks?.close());

  for (const version of VERSIONS)
    it(`refuses nothing that many documents of OpenAPI ${version} allow, whatever of them is left out`, () =>
      refusesNothingAllowed(checks, version, 700));
});
