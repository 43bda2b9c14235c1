/** The final validation of an imported API. */
import { expect } from 'chai';
import { AppError } from '../../src/errors.js';
import { checkApi } from '../../src/import/check-api.js';
import type { ImportedApi } from '../../src/import/imported-api.js';
import type { ImportedEndpoint } from '../../src/model/imported-parts.js';
import { ONE_FILE } from '../../src/model/source-files.js';

const ENDPOINT: ImportedEndpoint = {
  name: 'listPets',
  method: 'GET',
  path: '/pets',
  description: 'All',
  generatedCode: '// generated',
  handler: { file: 'list_pets.rs', code: '// list', ...ONE_FILE },
};
const API: ImportedApi = {
  kind: 'document',
  bindings: [],
  title: 'Pets',
  description: null,
  basePath: null,
  endpoints: [ENDPOINT],
  dependencies: null,
  document: null,
  warnings: [],
  problems: [],
  contents: new Map(),
};

describe('an imported API', () => {
  it('leaves an imported API unchanged when it can be stored', () => {
    expect(checkApi(API, 'invalid_spec')).to.deep.equal(API);
  });

  for (const text of ['a\0b', 'a\ud800b']) {
    it(`rejects an imported API with ${JSON.stringify(text)}, and names the place`, () => {
      const wrong: [Partial<ImportedApi>, RegExp][] = [
        [{ title: text }, /^The title must/],
        [{ description: text }, /^The description must/],
        [{ endpoints: [{ ...ENDPOINT, name: text }] }, /^GET \/pets: the name must/],
        [{ endpoints: [{ ...ENDPOINT, description: text }] }, /^GET \/pets: the description must/],
        [{ endpoints: [{ ...ENDPOINT, generatedCode: text }] }, /^GET \/pets: the generated handler must/],
        [
          { endpoints: [{ ...ENDPOINT, handler: { file: 'a.rs', code: text, ...ONE_FILE } }] },
          /^GET \/pets: the handler must/,
        ],
      ];
      for (const [part, message] of wrong) {
        expect(() => checkApi({ ...API, ...part }, 'invalid_bundle'))
          .to.throw(AppError, message)
          .with.property('code', 'invalid_bundle');
      }
    });

    it(`replaces characters of ${JSON.stringify(text)} in warnings and problems of an imported API`, () => {
      const problem = { name: text, handler: text, message: text };
      const { warnings, problems } = checkApi(
        { ...API, warnings: [{ kind: 'flaws', text }], problems: [problem] },
        'invalid_spec',
      );
      expect(warnings).to.deep.equal([{ kind: 'flaws', text: 'a\ufffdb' }]);
      expect(problems).to.deep.equal([{ name: 'a\ufffdb', handler: 'a\ufffdb', message: 'a\ufffdb' }]);
    });
  }
});
