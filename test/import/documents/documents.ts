/** OpenAPI documents for tests: real ones from files, and small generated ones. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { AppError, type ErrorCode } from '../../../src/errors.js';
import type { OpenApiDocument } from '../../../src/import/openapi/document.js';
import type { Bundle } from '../../../src/import/openapi/other-files.js';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import type { ImportWarning } from '../../../src/import/warnings.js';

/** The text of a document of this folder. */
export function documentText(name: string): string {
  return readFileSync(`test/import/documents/${name}`, 'utf8');
}

export const RESPONSES = { default: { description: 'Any' } };

/** A document with a title, these members, and one path unless given. */
export function documentWith(members: object, version = '3.0.3'): string {
  return JSON.stringify({
    openapi: version,
    info: { title: 'Test', version: '1' },
    paths: { '/a': { get: { responses: RESPONSES } } },
    ...members,
  });
}

/** With the texts of the warnings, without their kinds. */
type WithTexts<T> = Omit<T, 'warnings'> & { readonly warnings: readonly string[] };

export function withTexts<T extends { readonly warnings: readonly ImportWarning[] }>(api: T): WithTexts<T> {
  return { ...api, warnings: api.warnings.map(({ text }) => text) };
}

export async function read(
  text: string,
  operations = 100,
  bundle?: Bundle,
): Promise<WithTexts<OpenApiDocument>> {
  return withTexts(await readOpenApi(text, { operations }, bundle));
}

/** Expects a rejection with an AppError. */
export async function expectRejected(
  reading: Promise<unknown>,
  message: RegExp,
  code: ErrorCode = 'invalid_spec',
): Promise<void> {
  const error = await reading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error, 'nothing was rejected').to.be.instanceOf(AppError);
  expect(error).to.have.property('message').that.matches(message);
  expect(error).to.include({ code });
}
