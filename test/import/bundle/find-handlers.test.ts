/** Which files of a bundle are handlers, where others are their modules. */
import { expect } from 'chai';
import type { ImportedApi } from '../../../src/import/imported-api.js';
import type { ImportLimits } from '../../../src/import/limits.js';
import { ZipFolder } from '../../support/zip.js';
import { type Files, handlers, PETS, readFiles, spec } from './bundles.js';

describe('modules beside handlers of a bundle', () => {
  let zips: ZipFolder;
  before(async () => {
    zips = await ZipFolder.open();
  });
  after(() => zips.remove());
  const read = (files: Files, limits?: Partial<ImportLimits>) => readFiles(zips, files, limits);

  const PET = spec({ 'GET /pets/{id}': 'getPet' });
  const filesOf = ({ endpoints }: Pick<ImportedApi, 'endpoints'>, at = 0) =>
    Object.keys(endpoints[at]?.handler?.files ?? {});
  const manifest = (routes: readonly object[]) => JSON.stringify({ bundle: { name: 'Pets' }, routes });

  it('finds handlers in a folder beside which their modules are', async () => {
    for (const shared of ['shared/db.rs', 'db.rs', 'src/db.rs', 'src/deep/db.rs']) {
      const api = await read({
        'openapi.yaml': PET,
        'api/getPet.rs': `#[path="../${shared}"] mod db;`,
        [shared]: '',
      });
      expect(handlers(api), shared).to.deep.equal({ getPet: 'api/getPet.rs' });
      expect(filesOf(api)).to.deep.equal([shared]);
      expect(api.warnings).to.deep.equal([]);
    }
  });

  it('finds handlers that a manifest names in a folder beside which their modules are', async () => {
    const api = await read({
      'bundle.yaml': manifest([{ method: 'GET', path: '/a', handler: 'main' }]),
      'api/main.rs': '#[path="../shared/db.rs"] mod db;',
      'shared/db.rs': 'mod rows;',
      'shared/rows.rs': '',
    });
    expect(handlers(api)).to.deep.equal({ 'GET /a': 'api/main.rs' });
    expect(filesOf(api)).to.deep.equal(['shared/db.rs', 'shared/rows.rs']);
    expect(api).to.deep.include({ problems: [], warnings: [] });
  });

  it('counts no modules as handlers of a route that names none', async () => {
    const routes = [{ method: 'GET', path: '/a' }];
    const api = await read({
      'bundle.yaml': manifest(routes),
      'handlers/main.rs': 'mod common;\n#[cfg(test)] mod tests;\ninclude!("parts.rs");',
      'handlers/common.rs': 'mod text;',
      'handlers/common/text.rs': '',
      'handlers/tests.rs': '',
      'handlers/parts.rs': '',
    });
    expect(handlers(api)).to.deep.equal({ 'GET /a': 'handlers/main.rs' });
    expect(api).to.deep.include({ problems: [], warnings: [] });
    const two = await read({
      'bundle.yaml': manifest(routes),
      'handlers/main.rs': 'mod common;',
      'handlers/common.rs': '',
      'handlers/other.rs': '',
    });
    expect(two.problems.map(({ message }) => message)).to.deep.equal([
      'bundle.yaml: routes.0 names no handler for GET /a, and the bundle has 2: which one is only clear with one.',
    ]);
  });

  it('takes no module for a handler whose name is like that of the file that has it', async () => {
    const api = await read({
      'openapi.yaml': PET,
      'handlers/get_pet.rs': '#[path="getpet.rs"] mod m;\n#[path="../src/get-pet.rs"] mod n;',
      'handlers/getpet.rs': '',
      'src/get-pet.rs': '',
    });
    expect(handlers(api)).to.deep.equal({ getPet: 'handlers/get_pet.rs' });
    expect(filesOf(api)).to.deep.equal(['handlers/getpet.rs', 'src/get-pet.rs']);
    expect(api).to.deep.include({ problems: [], warnings: [] });
  });

  it('warns of no module that has the name of another one', async () => {
    const api = await read({
      'openapi.yaml': PETS,
      'handlers/get_pet.rs': '#[path="../src/common.rs"] mod common;',
      'handlers/list_pets.rs': 'mod common;',
      'handlers/common.rs': '',
      'src/common.rs': '',
    });
    expect([filesOf(api, 0), filesOf(api, 1)]).to.deep.equal([['handlers/common.rs'], ['src/common.rs']]);
    expect(api.warnings).to.deep.equal([]);
  });

  it('keeps as handlers what other files name, where their names and places are clear', async () => {
    const api = await read({
      'openapi.yaml': PETS,
      'src/lib.rs': 'mod list_pets; mod getPet;',
      'src/list_pets.rs': '',
      'src/getPet.rs': '',
      'tests/getPet.rs': '#[path="../src/getPet.rs"] mod it;',
    });
    expect(handlers(api)).to.deep.equal({ listPets: 'src/list_pets.rs', getPet: 'src/getPet.rs' });
  });

  it('keeps as handlers what other files name, and only they are named so, where other names are unclear', async () => {
    const api = await read({
      'openapi.yaml': spec({ 'GET /pets': 'listPets', 'GET /pets/{id}': 'getPet', 'PUT /pets': 'add-pet' }),
      'bundle.yaml': JSON.stringify({ routes: [{ method: 'GET', path: '/all', handler: 'all' }] }),
      'src/lib.rs': 'mod list_pets; mod getPet; mod all; mod addPet; mod spare;',
      'src/list_pets.rs': '',
      'src/getPet.rs': '',
      'src/get_pet.rs': '',
      'src/all.rs': '',
      'src/addPet.rs': '',
      'src/add_pet.rs': '',
      'src/spare.rs': '',
    });
    expect(handlers(api)).to.deep.equal({
      listPets: 'src/list_pets.rs',
      getPet: 'src/getPet.rs',
      'add-pet': 'src/add_pet.rs',
      'GET /all': 'src/all.rs',
    });
    expect(api.problems).to.deep.equal([]);
    expect(api.warnings).to.deep.equal([
      ...['src/lib.rs', 'src/get_pet.rs'].map((path) => `${path} is the handler of no operation.`),
      ...['src/addPet.rs', 'src/spare.rs'].map(
        (path) => `${path} is not read: no handler has it as a module.`,
      ),
    ]);
  });

  it('leaves out no files that name each other in a circle', async () => {
    const api = await read({
      'bundle.yaml': manifest([{ method: 'GET', path: '/a' }]),
      'a.rs': 'mod b;',
      'b.rs': 'mod a;',
    });
    expect(api.problems[0]?.message).to.include('and the bundle has 2');
    const files = { 'get_pet.rs': 'mod getpet;', 'getpet.rs': 'mod get_pet;' };
    expect((await read({ 'openapi.yaml': PET, ...files })).problems[0]?.message).to.match(
      /^get_pet\.rs or getpet\.rs could be the handler of getPet/,
    );
  });

  it('looks for modules in no file that is larger than a handler may be', async () => {
    const api = await read({
      'openapi.yaml': PET,
      'api/getPet.rs': '#[path="../shared/db.rs"] mod db;',
      'shared/db.rs': '',
      'more/large.rs': `mod x;${' '.repeat(100_000)}`,
    });
    expect(handlers(api)).to.deep.equal({ getPet: null });
    expect(api.warnings).to.have.length(3);
  });
});
