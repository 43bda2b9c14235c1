/** What an import makes of documents with parts that cannot be expressed refuses nothing that the documents allow. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import type { ValidatePolicy } from '../../../src/model/policies/validate.js';
import { documentWith, RESPONSES } from '../../import/documents/documents.js';
import { isAlike, isAlikeFor } from '../../support/other-validator.js';
import { anyDocument, type RandomDocument } from '../../support/random-documents.js';
import { anyValue } from '../../support/random-schemas.js';
import { type SchemaChecks, startSchemaChecks } from '../../support/schema-checks.js';

const DOCUMENTS = 1000;
const VALUES = 15;

/** What another validator accepts by the document's own schemas. Undefined where it cannot take them. */
function validatorOf({ schema, components }: RandomDocument): ((value: unknown) => boolean) | undefined {
  const ajv = new Ajv2020({ strict: false, logger: false, validateFormats: true });
  ajv.addFormat('idn-email', /@/).addFormat('regex', /^[a-z]*$/);
  try {
    // `nullable` is none of 3.1, and this validator knows it.
    const whole = JSON.stringify({ $ref: '#/root', root: schema, components: { schemas: components } });
    const validate = ajv.compile(
      JSON.parse(whole.replaceAll('"nullable":true', '"x-nullable":true')) as object,
    );
    return (value) => validate(value) as boolean;
  } catch {
    return undefined;
  }
}

async function imported({ schema, components }: RandomDocument) {
  const content = { 'application/json': { schema } };
  const document = documentWith(
    {
      paths: { '/a': { post: { requestBody: { content }, responses: RESPONSES } } },
      components: { schemas: components },
    },
    '3.1.0',
  );
  const { operations, warnings } = await readOpenApi(document, { operations: 1, validation: 'enforce' });
  const policy = JSON.parse(operations[0]?.validate ?? '{}') as Partial<ValidatePolicy>;
  return {
    schema: policy.body?.content['application/json']?.schema ?? true,
    components: policy.components?.schemas ?? {},
    leftOut: warnings.filter(({ kind }) => kind === 'validation').length,
  };
}

describe('the policy validate of documents', function () {
  this.timeout(300_000);
  let checks: SchemaChecks;
  before(async () => {
    checks = await startSchemaChecks();
  });
  after(() => checks?.close());

  it('refuses nothing that the document allows, whatever of it is left out', async () => {
    const seed = Math.floor(Math.random() * 2 ** 31);
    const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
    const values = fc.sample(anyValue, { numRuns: DOCUMENTS * VALUES, seed });
    const all = await Promise.all(
      Array.from({ length: DOCUMENTS }, async (_, at) => {
        const [document] = fc
          .sample(anyDocument(`d${at}-`), { numRuns: 1, seed: seed + at })
          .map((one) => plain(one) as RandomDocument);
        if (!document) throw new Error('There is no document.');
        const { leftOut, ...checked } = await imported(document);
        const texts = values.slice(at * VALUES, (at + 1) * VALUES).map((value) => JSON.stringify(value));
        return { document, leftOut, ...checked, values: texts };
      }),
    );
    const verdicts = await checks.verdicts(all);
    let allowed = 0;
    let refused = 0;
    const wrong = all.flatMap(({ document, schema, components, leftOut, values }, at) => {
      const validate = validatorOf(document);
      if (!validate || leftOut === 0 || !isAlike(document)) return [];
      return values.flatMap((value, index) => {
        if (!isAlikeFor(document, value)) return [];
        let accepts: boolean;
        try {
          accepts = validate(JSON.parse(value));
        } catch {
          return [];
        }
        const fits = verdicts[at]?.[index];
        if (!fits) refused++;
        if (!accepts) return [];
        allowed++;
        return fits ? [] : [JSON.stringify({ seed, document, schema, components, value })];
      });
    });
    expect(wrong).to.deep.equal([]);
    // Much is left out, and much is still refused.
    expect(allowed).to.be.greaterThan(DOCUMENTS / 4);
    expect(refused).to.be.greaterThan(DOCUMENTS / 8);
  });
});
