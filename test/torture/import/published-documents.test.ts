/**
 * Documents that others have published, with the numbers of what is imported of them. `published.json` names their
 * packages and licences; `scripts/published-documents.mjs` downloads these.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { generateHandler } from '../../../src/import/codegen/generate-handler.js';
import type { OpenApiDocument } from '../../../src/import/openapi/document.js';
import type { Bundle } from '../../../src/import/openapi/other-files.js';
import { parseText } from '../../../src/import/openapi/parse-text.js';
import { readOpenApi } from '../../../src/import/openapi/read-openapi.js';
import { problemOfPolicies } from '../../../src/model/policies/checks.js';
import { isObject } from '../../../src/util/json-object.js';
import { openCompiler } from '../../import/codegen/check-handlers.js';
import { publishedPackage } from '../../support/server-cache.js';

interface PublishedPackage {
  readonly source: string;
  readonly licence: string;
  readonly sha256: string;
  readonly documents: readonly PublishedDocument[];
}

interface PublishedDocument {
  readonly path: string;
  readonly sha256: string;
  /** The folder to whose files the document may refer; without it, the document comes by itself. */
  readonly bundle?: string;
  /** Of any method. */
  readonly operations: number;
  readonly endpoints: number;
  /** Numbers of warnings by their kind. */
  readonly warnings: Readonly<Record<string, number>>;
}

const PACKAGES = JSON.parse(
  readFileSync('test/import/documents/published.json', 'utf8'),
) as readonly PublishedPackage[];
const COMPILED = 30;
/** Of the choice of handlers that are compiled. */
const SEED = 16;
const METHODS = ['get', 'post', 'put', 'delete', 'patch', 'head', 'options', 'trace'];

describe('published OpenAPI documents', () => {
  const handlers: { readonly name: string; readonly source: string }[] = [];

  for (const { source, licence, sha256, documents } of PACKAGES) {
    describe(`of ${source} (${licence})`, () => {
      for (const expected of documents) {
        it(`reads ${expected.path} of ${source} with the expected endpoints and warnings`, async function () {
          this.timeout(30_000);
          const root = publishedPackage(sha256);
          const bytes = await readFile(join(root, expected.path));
          expect(createHash('sha256').update(bytes).digest('hex')).to.equal(expected.sha256);
          const bundle =
            expected.bundle === undefined ? undefined : bundleOf(root, expected.bundle, expected.path);
          const document = await readOpenApi(String(bytes), { operations: 2_000 }, bundle);
          const { operations, endpoints, warnings } = expected;
          expect({
            operations: operationsIn(String(bytes)),
            endpoints: document.operations.length,
            warnings: kindsOf(document),
          }).to.deep.equal({ operations, endpoints, warnings });
          for (const operation of document.operations) {
            const name = `${source}, ${expected.path}: ${operation.name}`;
            handlers.push({ name, source: generateHandler(operation, document.title) });
          }
          // Of all there is a policy that can be enforced: what cannot be is left out of it.
          const validated = await readOpenApi(
            String(bytes),
            { operations: 2_000, validation: 'enforce' },
            bundle,
          );
          const described = validated.operations.filter(
            ({ parameters, body }) => parameters.length > 0 || body,
          );
          const told = validated.warnings.filter(({ text }) => text.includes('requests are not validated'));
          expect(told).to.deep.equal([]);
          const policies = validated.operations.flatMap(({ validate }) => validate ?? []);
          expect(policies.length).to.be.at.most(described.length);
          if (described.length > 0) expect(policies.length).to.be.greaterThan(0);
          for (const policy of policies)
            expect(problemOfPolicies({ validate: JSON.parse(policy) })).to.equal(undefined);
        });
      }
    });
  }

  // Suites run after the tests beside them.
  describe('together', () => {
    it(`compiles ${COMPILED} handlers of published documents, chosen at random, without warnings`, async function () {
      // Builds the SDK unless it is cached.
      this.timeout(300_000);
      const chosen = sample(handlers, COMPILED, SEED);
      expect(chosen).to.have.lengthOf(COMPILED);
      const check = await openCompiler();
      const problems = await check(chosen.map((handler) => handler.source));
      const names = chosen.map(({ name }, at) => `handler_${at}: ${name}`).join('\n');
      expect(problems, `seed ${SEED}\n${names}`).to.deep.equal([]);
    });
  });
});

function bundleOf(root: string, folder: string, path: string): Bundle {
  return {
    document: path.slice(folder.length + 1),
    readText: (name) => readFile(join(root, folder, name), 'utf8'),
  };
}

function operationsIn(text: string): number {
  const document = parseText(text).value;
  const paths = isObject(document) && isObject(document['paths']) ? document['paths'] : {};
  const items = Object.values(paths).filter(isObject);
  return items.flatMap((item) => Object.keys(item).filter((key) => METHODS.includes(key))).length;
}

function kindsOf({ warnings }: OpenApiDocument): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const { kind } of warnings) kinds[kind] = (kinds[kind] ?? 0) + 1;
  return kinds;
}

/** Different elements, the same for the same seed: a Fisher-Yates shuffle with a linear congruential generator. */
function sample<T>(all: readonly T[], count: number, seed: number): readonly T[] {
  const rest = [...all];
  let state = seed;
  return Array.from({ length: Math.min(count, rest.length) }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return rest.splice(Math.floor((state / 2 ** 32) * rest.length), 1);
  }).flat();
}
