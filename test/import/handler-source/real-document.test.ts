/** Handlers for every operation of a large real document compile without warnings. */
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { generateHandler } from '../../../src/import/handler-source/generate-handler.js';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import { type CheckHandlers, openCompiler } from './rust.js';

const GITHUB = new URL(
  '../../../../node_modules/@octokit/openapi/generated/api.github.com.json',
  import.meta.url,
);

describe('handlers for a real document', () => {
  let check: CheckHandlers;

  before(async function () {
    // The SDK may have to be built first.
    this.timeout(300_000);
    check = await openCompiler();
  });

  it('compile without a warning, a thousand of them', async function () {
    this.timeout(120_000);
    const text = await readFile(GITHUB, 'utf8');
    const { title, operations } = await readOpenApi(text, { operations: 10_000 });
    expect(operations).to.have.length.above(1_000);
    const sources = operations.map((operation) => generateHandler(operation, title));
    expect(await check(sources)).to.deep.equal([]);
  });
});
