/** The official tests of JSON Schema 2020-12, by a real gateway. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { problemOfPolicies } from '../../../src/model/policies/checks.js';
import { type SchemaChecks, startSchemaChecks } from '../../support/schema-checks.js';

const SUITE = new URL('../../../../test/golden/json-schema-2020-12.json', import.meta.url);

interface Group {
  readonly description: string;
  readonly schema: unknown;
  readonly tests: readonly {
    readonly description: string;
    readonly data: unknown;
    readonly valid: boolean;
  }[];
}

/** Why schemas are refused where they are defined, and how many of the tests are. */
const REFUSED: Readonly<Record<string, readonly [RegExp, number]>> = {
  'nothing is fetched': [/ leads out of the policy, and nothing is fetched$/, 23],
  '$dynamicRef is not supported': [/\$dynamicRef: is not supported; use \$ref$/, 18],
  'formats that are not supported': [/format: "(idn-email|idn-hostname|regex)" is not supported$/, 13],
  'other dialects': [/\$schema: is another dialect/, 4],
  'keywords of older drafts': [/dependencies: is of older drafts/, 7],
  'references into what is no schema': [/ leads to no schema$/, 5],
  'names of properties that are no general category': [/has \\p\{digit\}; only general categories/, 2],
  'the management API takes nothing of this name': [/^has a member __proto__$/, 1],
  'texts that cannot be stored': [/must not have NUL characters$/, 2],
};

/** Tests with another outcome. */
const OTHERWISE: Readonly<Record<string, readonly [RegExp, number]>> = {
  'formats are enforced': [/^format: .* is only an annotation by default$/, 16],
  'hostnames of other scripts are not decoded': [/^optional\/format\/hostname: validation of A-label/, 23],
};

describe('the official tests of JSON Schema', function () {
  this.timeout(300_000);
  let checks: SchemaChecks;
  before(async () => {
    checks = await startSchemaChecks();
  });
  after(() => checks?.close());

  it('passes the official tests of JSON Schema, except those that are listed', async () => {
    const files = JSON.parse(readFileSync(SUITE, 'utf8')).tests as Record<string, Group[]>;
    const groups = Object.entries(files).flatMap(([file, all]) => all.map((group) => ({ file, group })));
    const refused: string[] = [];
    const accepted = groups.filter(({ group }) => {
      const problem = problemOf(group.schema);
      if (problem !== undefined) refused.push(problem);
      return problem === undefined;
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
    expect(countedBy(OTHERWISE, wrong)).to.deep.equal(counts(OTHERWISE));
    expect(countedBy(REFUSED, refused)).to.deep.equal(counts(REFUSED));
    expect(accepted.length).to.be.greaterThan(380);
  });
});

type Reasons = Readonly<Record<string, readonly [RegExp, number]>>;

/** How many have which reason; those without one by themselves. */
function countedBy(reasons: Reasons, texts: readonly string[]): Record<string, number> {
  const counted: Record<string, number> = {};
  for (const text of texts) {
    const [reason = text] = Object.entries(reasons).find(([, [pattern]]) => pattern.test(text)) ?? [];
    counted[reason] = (counted[reason] ?? 0) + 1;
  }
  return counted;
}

function counts(reasons: Reasons): Record<string, number> {
  return Object.fromEntries(Object.entries(reasons).map(([reason, [, count]]) => [reason, count]));
}

function problemOf(schema: unknown): string | undefined {
  if (JSON.stringify(schema).includes('"__proto__":')) return 'has a member __proto__';
  const content = { 'application/json': { schema } };
  return problemOfPolicies({ validate: { mode: 'enforce', body: { content } } })?.join(': ');
}
