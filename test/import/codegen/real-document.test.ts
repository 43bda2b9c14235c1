/** Compiles the generated handlers of every operation of a large real document. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { generateHandler } from '../../../src/import/codegen/generate-handler.js';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import { GITHUB_DOCUMENT } from '../../support/server-cache.js';
import { type CheckHandlers, openCompiler } from './check-handlers.js';

describe('generated handlers of a large real document', () => {
  let check: CheckHandlers;

  before(async function () {
    // Builds the SDK unless it is cached.
    this.timeout(300_000);
    check = await openCompiler();
  });

  it('generates handlers that compile without warnings for all operations of a large real document', async function () {
    this.timeout(120_000);
    const text = await readFile(GITHUB_DOCUMENT, 'utf8');
    const { title, operations } = await readOpenApi(text, { operations: 10_000 });
    expect(operations).to.have.length.above(1_000);
    const sources = operations.map((operation) => generateHandler(operation, title));
    expect(await check(sources)).to.deep.equal([]);
  });
});
