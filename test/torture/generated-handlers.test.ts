/** Generated handlers compile without warnings: all combinations of types and styles, and those of many documents. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import fc from 'fast-check';
import { generateHandler } from '../../src/import/codegen/generate-handler.js';
import type { Operation } from '../../src/import/openapi/document.js';
import { readOpenApi } from '../../src/import/openapi/read-openapi.js';
import {
  field,
  formBody,
  jsonBody,
  MULTIPART,
  member,
  onlyTexts,
  URLENCODED,
} from '../import/codegen/bodies.js';
import { type CheckHandlers, openCompiler } from '../import/codegen/check-handlers.js';
import { hostileOperation, operation, parameter, TEXT_STYLES } from '../import/codegen/operations.js';
import { GITHUB_DOCUMENT } from '../support/server-cache.js';

const MANY = Array.from({ length: 60 }, (_, at) => `name-${at}`);

describe('generated handlers', () => {
  let check: CheckHandlers;

  before(async function () {
    // Builds the SDK unless it is cached.
    this.timeout(300_000);
    check = await openCompiler();
  });

  const generated = (of: Operation) => generateHandler(of, 'Pet store');

  it('generates handlers that compile without warnings for all combinations of types and styles', async function () {
    this.timeout(120_000);
    const types = ['string', 'integer', 'number', 'boolean', 'array', 'object', 'any'] as const;
    const locations = ['path', 'query', 'header', 'cookie'] as const;
    const media = ['application/json', 'application/problem+json', MULTIPART, URLENCODED, 'text/plain'];
    const styles = TEXT_STYLES.flatMap((style) => [true, false].map((explode) => ({ style, explode })));
    const flags = [true, false];
    const parameters = types.flatMap((type) =>
      locations.flatMap((location) =>
        flags.flatMap((required) =>
          styles.map((style) =>
            parameter('a', { type, in: location, required, itemType: 'integer', ...style }),
          ),
        ),
      ),
    );
    // Each alone, as its helpers depend on it, and many in one form.
    const fields = types.flatMap((type) =>
      styles.flatMap((style) =>
        flags.map((isFile) => field('a', { type, isFile, itemType: 'integer', ...style })),
      ),
    );
    const many = [...fields, ...fields.map((one) => ({ ...one, itemType: 'object' as const }))].map(
      (one, at) => ({ ...one, name: `a${at}` }),
    );
    const forms = [MULTIPART, URLENCODED].flatMap((mediaType) => [
      ...fields.map((one) => formBody(mediaType, [one])),
      ...flags.map((required) =>
        formBody(
          mediaType,
          many.map((one) => ({ ...one, required })),
          { required },
        ),
      ),
    ]);
    const bodies = types.flatMap((type) =>
      media.flatMap((mediaType) =>
        flags.map((required) => ({ type, mediaType, required, members: [] as const })),
      ),
    );
    const members = types.flatMap((type) =>
      flags.flatMap((required) =>
        flags.flatMap((nullable) =>
          [undefined, ['a', 'b'], MANY].map((allowed, at) =>
            member(`${type}-${required}-${nullable}-${at}`, {
              ...{ type, required, nullable },
              ...(allowed === undefined ? {} : { allowed: onlyTexts(...allowed) }),
            }),
          ),
        ),
      ),
    );
    const sources = [
      ...parameters.map((one) => operation({ path: one.in === 'path' ? '/{a}' : '/', parameters: [one] })),
      ...[...bodies, ...forms, jsonBody(members), jsonBody(members, { required: false })].map((body) =>
        operation({ body }),
      ),
    ].map(generated);
    expect(await check(sources)).to.deep.equal([]);
  });

  it('generates handlers that compile without warnings for untrusted documents', async function () {
    this.timeout(180_000);
    const operations = fc.array(hostileOperation, { minLength: 200, maxLength: 200, size: 'max' });
    await fc.assert(
      fc.asyncProperty(operations, async (drawn) => {
        const reported = await check(drawn.map((one) => generateHandler(one, one.name)));
        expect(reported).to.deep.equal([]);
      }),
      // Shrinking would run the compiler for each step.
      { numRuns: 3, endOnFailure: true },
    );
  });

  it('generates handlers that compile without warnings for all operations of a large real document', async function () {
    this.timeout(120_000);
    const text = await readFile(GITHUB_DOCUMENT, 'utf8');
    const { title, operations } = await readOpenApi(text, { operations: 10_000 });
    expect(operations).to.have.length.above(1_000);
    const sources = operations.map((one) => generateHandler(one, title));
    expect(await check(sources)).to.deep.equal([]);
  });
});
