/** What an import makes of documents refuses nothing that they allow, whatever of them cannot be expressed. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect } from 'chai';
import fc from 'fast-check';
import { readOpenApi } from '../../src/import/openapi/read-openapi.js';
import type { ValidatePolicy } from '../../src/model/policies/validate.js';
import { documentWith, RESPONSES } from '../import/documents/documents.js';
import { laterSchema } from './old-schemas.js';
import { isAlike, isAlikeFor } from './other-validator.js';
import { anyDocument, type RandomDocument } from './random-documents.js';
import { anyNearValue } from './random-schemas.js';
import type { SchemaChecks } from './schema-checks.js';

const VALUES = 15;
export const VERSIONS = ['3.0.3', '3.1.0'] as const;
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

/** What an import makes of a document with this schema. */
export async function imported({ schema, components }: RandomDocument, version: Version) {
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

/** Checks that so many random documents of this version allow no more than what is made of them. */
export async function refusesNothingAllowed(
  checks: SchemaChecks,
  version: Version,
  documents: number,
): Promise<void> {
  const seed = Math.floor(Math.random() * 2 ** 31);
  const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));
  const values = fc.sample(anyNearValue, { numRuns: documents * VALUES, seed });
  const all = await Promise.all(
    Array.from({ length: documents }, async (_, at) => {
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
  for (const [name, count] of Object.entries(counted)) expect(count, name).to.be.greaterThan(documents / 8);
}
