/** What an import makes of documents refuses nothing that they allow, whatever of them cannot be expressed. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import type { ValidatePolicy } from '../../../src/model/policies/validate.js';
import { documentWith, RESPONSES } from '../../import/documents/documents.js';
import { laterSchema } from '../../support/old-schemas.js';
import { isAlike, isAlikeFor } from '../../support/other-validator.js';
import { anyDocument, type RandomDocument } from '../../support/random-documents.js';
import { anyNearValue } from '../../support/random-schemas.js';
import { type SchemaChecks, startSchemaChecks } from '../../support/schema-checks.js';

const DOCUMENTS = 700;
const VALUES = 15;
const VERSIONS = ['3.0.3', '3.1.0'] as const;
type Version = (typeof VERSIONS)[number];

/** What another validator accepts by the document's own schemas. Undefined where it cannot take them. */
function validatorOf(
  { schema, components }: RandomDocument,
  version: Version,
): ((value: unknown) => boolean) | undefined {
  const ajv = new Ajv2020({ strict: false, logger: false, validateFormats: true });
  ajv.addFormat('idn-email', /@/).addFormat('regex', /^[a-z]*$/);
  const own = version === '3.0.3' ? laterSchema : (value: unknown) => value;
  const schemas = Object.fromEntries(Object.entries(components).map(([name, one]) => [name, own(one)]));
  try {
    // `nullable` is none of 3.1, and this validator knows it.
    const whole = JSON.stringify({ $ref: '#/root', root: own(schema), components: { schemas } });
    const validate = ajv.compile(
      JSON.parse(whole.replaceAll('"nullable":true', '"x-nullable":true')) as object,
    );
    return (value) => validate(value) as boolean;
  } catch {
    return undefined;
  }
}

async function imported({ schema, components }: RandomDocument, version: Version) {
  const content = { 'application/json': { schema } };
  const document = documentWith(
    {
      paths: { '/a': { post: { requestBody: { content }, responses: RESPONSES } } },
      components: { schemas: components },
    },
    version,
  );
  const { operations, warnings } = await readOpenApi(document, { operations: 1, validation: 'enforce' });
  const policy = JSON.parse(operations[0]?.validate ?? '{}') as Partial<ValidatePolicy>;
  return {
    schema: policy.body?.content['application/json']?.schema ?? true,
    components: policy.components?.schemas ?? {},
    isWhole: !warnings.some(({ kind }) => kind === 'validation'),
  };
}

/** Whether values fit only where the document says so: nothing is left out, also not without a warning. */
function isExact(document: RandomDocument, isWhole: boolean): boolean {
  return isWhole && !/"(readOnly|nullable)":/.test(JSON.stringify(document));
}

describe('the policy validate of documents', function () {
  this.timeout(300_000);
  let checks: SchemaChecks;
  before(async () => {
    checks = await startSchemaChecks();
  });
  after(() => checks?.close());

  for (const version of VERSIONS)
    it(`refuses nothing that a document of OpenAPI ${version} allows, whatever of it is left out`, async () => {
      const seed = Math.floor(Math.random() * 2 ** 31);
      const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
      const values = fc.sample(anyNearValue, { numRuns: DOCUMENTS * VALUES, seed });
      const all = await Promise.all(
        Array.from({ length: DOCUMENTS }, async (_, at) => {
          const [document] = fc
            .sample(anyDocument(`d${version.at(2)}-${at}-`), { numRuns: 1, seed: seed + at })
            .map((one) => plain(one) as RandomDocument);
          if (!document) throw new Error('There is no document.');
          const { isWhole, ...checked } = await imported(document, version);
          const texts = values.slice(at * VALUES, (at + 1) * VALUES).map((value) => JSON.stringify(value));
          return { document, isWhole, ...checked, values: texts };
        }),
      );
      const verdicts = await checks.verdicts(all);
      const counted = { allowed: 0, refused: 0, exact: 0 };
      const wrong = all.flatMap(({ document, schema, components, isWhole, values }, at) => {
        const validate = validatorOf(document, version);
        if (!validate || !isAlike(document)) return [];
        return values.flatMap((value, index) => {
          if (!isAlikeFor(document, value)) return [];
          let accepts: boolean;
          try {
            accepts = validate(JSON.parse(value));
          } catch {
            return [];
          }
          const fits = verdicts[at]?.[index];
          const isChecked = isExact(document, isWhole);
          if (isChecked) counted.exact++;
          else counted[fits ? 'allowed' : 'refused']++;
          const isRight = fits || !accepts;
          if (isRight && (!isChecked || fits === accepts)) return [];
          return [JSON.stringify({ seed, accepts, document, schema, components, value })];
        });
      });
      expect(wrong).to.deep.equal([]);
      // Much is left out, and much is still refused.
      for (const [name, count] of Object.entries(counted))
        expect(count, name).to.be.greaterThan(DOCUMENTS / 8);
    });

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
