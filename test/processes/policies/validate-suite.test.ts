/** The official tests of JSON Schema 2020-12, by a real gateway. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { SchemaProblem } from '../../../src/model/json-schema/schema-problem.js';
import { compileValidate } from '../../../src/model/policies/validate.js';
import { type SchemaChecks, startSchemaChecks } from '../../support/schema-checks.js';

const SUITE = new URL('../../../../test/golden/json-schema-2020-12.json', import.meta.url);

interface Group {
  readonly description: string;
  readonly schema: unknown;
  readonly tests: readonly { readonly description: string; readonly data: unknown; readonly valid: boolean }[];
}

/** What is refused where it is defined, by a part of the message. Nothing else is. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {};
/** Tests with another outcome, and why. */
const OTHERWISE: Readonly<Record<string, string>> = {};

describe('the official tests of JSON Schema', function () {
  this.timeout(300_000);
  let checks: SchemaChecks;
  before(async () => {
    checks = await startSchemaChecks();
  });
  after(() => checks?.close());

  it('have the outcomes that they should have, but for those that are listed', async () => {
    const files = JSON.parse(readFileSync(SUITE, "utf8")).tests as Record<
      string,
      Group[]
    >;
    const groups = Object.entries(files).flatMap(([file, all]) => all.map((group) => ({ file, group })));
    const refused: Record<string, string[]> = {};
    const accepted = groups.filter(({ file, group }) => {
      const problem = problemOf(group.schema);
      if (problem === undefined) return true;
      const known = refused[file] ?? [];
      refused[file] = [...known, `${group.description}: ${problem}`];
      return false;
    });
    const verdicts = await checks.verdicts(
      accepted.map(({ group }) => ({
        schema: group.schema,
        values: group.tests.map(({ data }) => JSON.stringify(data)),
      })),
    );
    const wrong = accepted.flatMap(({ file, group }, at) =>
      group.tests.flatMap(({ description, valid }, test) =>
        verdicts[at]?.[test] === valid ? [] : [`${file}: ${group.description}: ${description}`],
      ),
    );
    console.log(JSON.stringify({ refused, wrong, accepted: accepted.length, all: groups.length }, null, 1));
    expect(wrong).to.deep.equal(Object.keys(OTHERWISE));
    expect(refused).to.deep.equal(REFUSED);
  });
});

function problemOf(schema: unknown): string | undefined {
  try {
    compileValidate({ mode: 'enforce', body: { content: { 'application/json': { schema } } } });
    return undefined;
  } catch (thrown) {
    if (thrown instanceof SchemaProblem) return thrown.message;
    throw thrown;
  }
}
