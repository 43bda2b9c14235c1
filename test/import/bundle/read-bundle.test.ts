/** Reading whole bundles: which files are read, the resulting API, and warnings about the rest. */
import { expect } from 'chai';
import type { ErrorCode } from '../../../src/errors.js';
import { AppError } from '../../../src/errors.js';
import { readBundle } from '../../../src/import/bundle/read-bundle.js';
import type { ImportLimits } from '../../../src/import/limits.js';
import { ZipFolder, zipOf } from '../../support/zip.js';
import { type Files, handlers, LIMITS, PETS, readFiles, spec } from './bundles.js';

const BOTH = { 'handlers/list_pets.rs': '// list', 'handlers/get_pet.rs': '// get' };

/** Of a handler with nothing beside it. */
const ALONE = { entry: null, files: null };

describe('bundle', () => {
  let zips: ZipFolder;
  before(async () => {
    zips = await ZipFolder.open();
  });
  after(() => zips.remove());

  const read = (files: Files, limits?: Partial<ImportLimits>) => readFiles(zips, files, limits);

  async function expectRejected(
    files: Files,
    message: RegExp,
    { code = 'invalid_bundle', ...limits }: Partial<ImportLimits> & { code?: ErrorCode } = {},
  ): Promise<void> {
    const outcome = await read(files, limits).catch((thrown: unknown) => thrown);
    expect(outcome).to.be.instanceOf(AppError);
    const error = outcome as AppError;
    expect(error.message).to.match(message);
    expect(error.code).to.equal(code);
  }

  it('reads a bundle as an API with its handlers', async () => {
    const api = await read({ 'openapi.yaml': spec({ 'GET /pets': 'listPets' }, { server: '/v1' }), ...BOTH });
    const [endpoint] = api.endpoints;
    expect(endpoint).to.deep.include({
      name: 'listPets',
      method: 'GET',
      path: '/pets',
      handler: { file: 'handlers/list_pets.rs', code: '// list', ...ALONE },
    });
    expect(endpoint?.generatedCode).to.include('handler_loop_result!');
    expect(api).to.deep.include({
      title: 'Pets',
      description: 'All of Pets',
      basePath: '/v1',
      dependencies: null,
      problems: [],
      warnings: ['handlers/get_pet.rs is the handler of no operation.'],
    });
  });

  describe('the document of a bundle', () => {
    const order = [
      ...['openapi.yaml', 'openapi.json', 'api.yaml', 'spec.yaml'],
      ...['openapi.yml', 'api.yml', 'api.json', 'spec.yml', 'spec.json'],
      ...['swagger.yaml', 'swagger.yml', 'swagger.json'],
    ];
    for (const [index, name] of order.entries()) {
      it(`reads ${name} as the document of a bundle before names of lower precedence`, async () => {
        const later = order.slice(index + 1);
        const others = Object.fromEntries(later.map((other) => [other, 'not read']));
        const api = await read({ ...others, [name]: PETS, ...BOTH });
        expect(api.title).to.equal('Pets');
        expect(api.warnings).to.deep.equal(
          later.map((other) => `${other} is not read: ${name} takes precedence.`),
        );
      });
    }

    it('reads no document of a bundle under another name, and warns of it', async () => {
      for (const name of ['OpenAPI.yaml', 'docs/openapi.yaml', 'v1/swagger.json']) {
        await expectRejected({ [name]: PETS, 'README.md': '' }, new RegExp(`It has ${name}, which`));
      }
      const files = {
        'openapi.yaml': PETS,
        'Api.yml': '',
        'bundle.json': '',
        'bundle.yml': '',
        'bundle.yaml': '',
      };
      const { warnings } = await read({ ...files, ...BOTH });
      expect(warnings).to.deep.equal([
        'bundle.yml is not read: bundle.yaml takes precedence.',
        `Api.yml is not read: a document must be named ${order.join(', ')} and be at the root.`,
        'bundle.json is not read: the manifest must be named bundle.yaml or bundle.yml and be at the root.',
      ]);
    });

    it('follows references of a document to other files of a bundle, never out of the archive', async () => {
      const files = {
        'api/openapi.yaml': JSON.stringify({
          openapi: '3.0.3',
          info: { title: 'Pets', version: '1' },
          paths: {
            '/pets': { $ref: 'paths/api.yaml#/pets' },
            '/secrets': { $ref: '../../../../etc/passwd' },
            '/hosts': { $ref: '/etc/hosts' },
          },
        }),
        'api/paths/api.yaml':
          'pets: {post: {operationId: addPet, requestBody: {$ref: "../parts.json#/Pet"}}}',
        'api/parts.json':
          '{"Pet": {"content": {"application/json": {"schema": {"properties": {"id": {}}}}}}}',
      };
      const { endpoints, warnings } = await read(files);
      expect(endpoints.map(({ name }) => name)).to.deep.equal(['addPet']);
      expect(endpoints[0]?.generatedCode).to.include('struct Body');
      expect(warnings.filter((text) => text.includes('left out'))).to.deep.equal([
        '/paths/~1secrets: left out: $ref "../../../../etc/passwd" leads out of the bundle, and nothing else is read',
        '/paths/~1hosts: left out: $ref "/etc/hosts" leads out of the bundle, and nothing else is read',
      ]);
      expect(warnings.join()).to.not.include('is not read:');
      const large = { ...files, 'api/parts.json': `{"x": "${'x'.repeat(2_000)}"}` };
      await expectRejected(
        large,
        /requestBody: parts\.json has 2009 bytes; at most 1000 .*SPEC_LIMIT_BYTES/,
        {
          specBytes: 1_000,
          code: 'invalid_spec',
        },
      );
    });

    it('reports errors of the document of a bundle with its file name', async () => {
      await expectRejected({ 'api.yaml': 'swagger: "1.2"' }, /^api\.yaml: \/swagger: /, {
        code: 'invalid_spec',
      });
      await expectRejected({ 'openapi.json': '{' }, /^openapi\.json: /, { code: 'invalid_spec' });
    });
  });

  describe('bundles without a document and routes', () => {
    const names =
      /no OpenAPI document and no routes: put openapi\.yaml, openapi\.json, api\.yaml, spec\.yaml at its root/;
    it('rejects a bundle that has handlers only', () => expectRejected(BOTH, names));
    it('rejects a bundle without a document whose manifest lists no routes', () =>
      expectRejected({ ...BOTH, 'bundle.yaml': 'bundle: { name: Pets }' }, names));
    it('rejects a bundle that has metadata files only', () =>
      expectRejected({ '__MACOSX/._openapi.yaml': PETS, '.DS_Store': '' }, names));
  });

  describe('bundles in a single folder', () => {
    const inFolder = (folder: string, files: Files) =>
      Object.fromEntries(Object.entries(files).map(([name, data]) => [`${folder}/${name}`, data]));

    it('reads a bundle whose files are all in a single folder', async () => {
      const api = await read(inFolder('petstore', { 'openapi.yaml': PETS, ...BOTH }));
      expect(handlers(api)).to.deep.equal({
        listPets: 'handlers/list_pets.rs',
        getPet: 'handlers/get_pet.rs',
      });
    });

    it('reads a bundle in a single folder beside metadata files of macOS', async () => {
      const files = { ...inFolder('petstore', { 'openapi.yaml': PETS, '.DS_Store': 'x', ...BOTH }) };
      const metadata = { '__MACOSX/petstore/._openapi.yaml': 'x', '.DS_Store': 'x' };
      const api = await read({ ...files, ...metadata, 'petstore/handlers/._list_pets.rs': '\u0000' });
      expect(api.warnings).to.deep.equal([]);
      expect(api.endpoints).to.have.length(2);
    });

    it('reads a bundle in a single folder that is named like the folder of handlers', async () => {
      const api = await read(inFolder('handlers', { 'openapi.yaml': PETS, ...BOTH }));
      expect(handlers(api)).to.deep.equal({
        listPets: 'handlers/list_pets.rs',
        getPet: 'handlers/get_pet.rs',
      });
    });

    it('reads no bundle in a folder with another folder beside it', () =>
      expectRejected(
        { ...inFolder('petstore', { 'openapi.yaml': PETS }), 'other/README.md': '' },
        /no OpenAPI document/,
      ));
    it('reads no bundle in a folder within another folder', () =>
      expectRejected(inFolder('a/b', { 'openapi.yaml': PETS }), /no OpenAPI document/));
  });

  describe('handlers of a bundle', () => {
    for (const folder of ['handlers/', '', 'src/']) {
      it(`finds the handlers of a bundle in ${folder || 'its root'}`, async () => {
        const api = await read({
          'openapi.yaml': PETS,
          [`${folder}list_pets.rs`]: '',
          [`${folder}getPet.rs`]: '',
        });
        expect(handlers(api)).to.deep.equal({
          listPets: `${folder}list_pets.rs`,
          getPet: `${folder}getPet.rs`,
        });
        expect(api.warnings).to.deep.equal([]);
      });
    }

    it('finds handlers of one name in handlers/ first, then in the root', async () => {
      const api = await read({
        'openapi.yaml': PETS,
        'src/list_pets.rs': 'src',
        'list_pets.rs': 'root',
        'handlers/list_pets.rs': 'handlers',
        'src/get_pet.rs': 'src',
        'get_pet.rs': 'root',
      });
      expect(handlers(api)).to.deep.equal({ listPets: 'handlers/list_pets.rs', getPet: 'get_pet.rs' });
      expect(api.warnings).to.deep.equal([
        'list_pets.rs is not read: handlers/list_pets.rs has the same name and takes precedence.',
        'src/list_pets.rs is not read: handlers/list_pets.rs has the same name and takes precedence.',
        'src/get_pet.rs is not read: get_pet.rs has the same name and takes precedence.',
      ]);
    });

    it('finds no handlers in deeper folders of a bundle, and warns of them', async () => {
      const api = await read({
        'openapi.yaml': PETS,
        ...BOTH,
        'handlers/v2/get_pet.rs': '',
        'tests/get_pet.rs': '',
      });
      expect(handlers(api)).to.include({ getPet: 'handlers/get_pet.rs' });
      expect(api.warnings).to.deep.equal(
        ['handlers/v2/get_pet.rs', 'tests/get_pet.rs'].map(
          (path) =>
            `${path} is not read: handlers must be in handlers/, in src/ or at the root, or all in one folder.`,
        ),
      );
    });

    it('finds handlers in any other folder of a bundle if they are all in one', async () => {
      const files = {
        'openapi.yaml': PETS,
        'lib/api/list_pets.rs': '',
        'lib/api/getPet.rs': '',
        'docs/a.md': '',
      };
      const api = await read(files);
      expect(handlers(api)).to.deep.equal({ listPets: 'lib/api/list_pets.rs', getPet: 'lib/api/getPet.rs' });
      expect(api.warnings).to.deep.equal([]);
      const two = await read({ ...files, 'more/get_pet.rs': '' });
      expect(handlers(two)).to.deep.equal({ listPets: null, getPet: null });
      expect(two.warnings).to.have.length(3);
    });

    it('finds handlers with names that are special to cargo', async () => {
      const api = await read({
        'openapi.yaml': spec({ 'GET /': 'main' }),
        'src/main.rs': '',
        'src/lib.rs': '',
      });
      expect(handlers(api)).to.deep.equal({ main: 'src/main.rs' });
      expect(api.warnings).to.deep.equal(['src/lib.rs is the handler of no operation.']);
    });

    it('reads a bundle without handlers for its operations without a warning', async () => {
      const files = { 'openapi.yaml': spec({ 'GET /pets': 'listPets', 'POST /pets': null }) };
      const api = await read(files);
      expect(handlers(api)).to.deep.equal({ listPets: null, 'POST /pets': null });
      expect(api.warnings).to.deep.equal([]);
    });

    it('lists warnings about unused handlers of a bundle first', async () => {
      const heads = Object.fromEntries(
        Array.from({ length: 90 }, (_, at) => [`HEAD /p${at}`, null] as const),
      );
      const api = await read({
        'openapi.yaml': spec({ 'GET /pets': 'listPets', ...heads }),
        'handlers/orphan.rs': '',
        'handlers/deep/er.rs': '',
        'bundle.yaml': `${Array.from({ length: 60 }, (_, at) => `key${at}: 1`).join('\n')}\n`,
      });
      expect(api.warnings[0]).to.equal('handlers/orphan.rs is the handler of no operation.');
      expect(api.warnings[1]).to.match(/^bundle\.yaml, line 1, column 1: key0 is not a known key/);
      expect(api.warnings[51]).to.equal('… and 10 more unknown keys of the manifest');
      expect(api.warnings[52]).to.match(/^handlers\/deep\/er\.rs is not read/);
      expect(api.warnings[53]).to.match(/^HEAD \/p0: left out/);
      expect(api.warnings.at(-1)).to.match(/^HEAD \/p89: left out/);
    });

    it('reports ambiguous handlers of a bundle once', async () => {
      const api = await read({ 'openapi.yaml': PETS, ...BOTH, 'src/list-pets.rs': '' });
      expect(handlers(api)).to.deep.equal({ listPets: null, getPet: 'handlers/get_pet.rs' });
      expect(api.warnings).to.deep.equal([]);
      expect(api.problems.map(({ name, handler }) => ({ name, handler }))).to.deep.equal([
        { name: 'listPets', handler: null },
      ]);
    });

    it('drops the byte order marks of the document and the handlers of a bundle', async () => {
      const api = await read({
        'openapi.yaml': `\ufeff${PETS}`,
        ...BOTH,
        'handlers/get_pet.rs': '\ufeff// get',
      });
      expect(api.endpoints[1]?.handler?.code).to.equal('// get');
    });
  });

  describe('handlers that are rejected', () => {
    const withHandler = (data: string | Uint8Array, name = 'handlers/get_pet.rs') => ({
      'openapi.yaml': PETS,
      [name]: data,
    });
    it('rejects a handler that is not UTF-8', () =>
      expectRejected(
        withHandler(Uint8Array.of(0x2f, 0x2f, 0xf6)),
        /^handlers\/get_pet\.rs is not UTF-8; save it/,
      ));
    it('rejects a handler that is UTF-16', () =>
      expectRejected(withHandler(Buffer.from('\ufeff// get', 'utf16le')), /is not UTF-8/));
    it('rejects a handler that is not UTF-8 even when no operation has its name', () =>
      expectRejected(withHandler(Uint8Array.of(0xff), 'other.rs'), /^other\.rs is not UTF-8/));
    it('rejects a handler with NUL characters', () =>
      expectRejected(withHandler('a\0b'), /^handlers\/get_pet\.rs has NUL characters/));
    it('rejects a handler over the limit', () =>
      expectRejected(
        withHandler('x'.repeat(100_001)),
        /^handlers\/get_pet\.rs has 100001 bytes; at most 100000 are allowed \(API_BODY_LIMIT_BYTES\)/,
        {
          code: 'body_too_large',
        },
      ));
  });

  it('rejects a document over the limit', () =>
    expectRejected(
      { 'openapi.yaml': PETS },
      /^openapi\.yaml has \d+ bytes; at most 100 are allowed \(SPEC_LIMIT_BYTES\)/,
      {
        code: 'body_too_large',
        specBytes: 100,
      },
    ));

  it('rejects a document that is not UTF-8', () =>
    expectRejected({ 'openapi.yaml': Uint8Array.of(0xff, 0xfe) }, /^openapi\.yaml is not UTF-8/));

  it('rejects a manifest over 1 MiB', () =>
    expectRejected({ 'bundle.yaml': '#'.repeat(2 ** 20 + 1) }, /^bundle\.yaml has \d+ bytes/, {
      code: 'body_too_large',
    }));

  describe('the manifest of a bundle', () => {
    const route = (method: string, path: string, handler: string) => ({ method, path, handler });
    const manifest = (routes: object[], rest: object = { bundle: { name: 'Pets' } }) => ({
      'bundle.yaml': JSON.stringify({ ...rest, routes }),
    });

    it('reads the crates of all handlers from the manifest', async () => {
      const api = await read({
        'openapi.yaml': PETS,
        ...BOTH,
        ...manifest([], { dependencies: { regex: '1.10' } }),
      });
      expect(api.dependencies).to.deep.equal({ regex: '1.10' });
    });

    it('distinguishes empty and missing dependencies of a manifest', async () => {
      const dependenciesIn = async (rest: object) =>
        (await read({ 'openapi.yaml': PETS, ...BOTH, ...manifest([], rest) })).dependencies;
      expect(await dependenciesIn({ dependencies: {} })).to.deep.equal({});
      expect(await dependenciesIn({ dependencies: null })).to.equal(null);
      expect(await dependenciesIn({})).to.equal(null);
    });

    it('reads a bundle with a manifest and without a document', async () => {
      const api = await read({
        ...manifest([route('get', '/pets', 'all'), route('GET', '/pets/{id}', 'one.rs')]),
        'all.rs': '// all',
        'src/one.rs': '// one',
      });
      expect(api).to.deep.include({
        title: 'Pets',
        description: null,
        basePath: null,
        warnings: [],
        problems: [],
      });
      expect(api.endpoints.map(({ generatedCode, ...rest }) => rest)).to.deep.equal([
        {
          name: 'GET /pets',
          method: 'GET',
          path: '/pets',
          description: null,
          handler: { file: 'all.rs', code: '// all', ...ALONE },
        },
        {
          name: 'GET /pets/{id}',
          method: 'GET',
          path: '/pets/{id}',
          description: null,
          handler: { file: 'src/one.rs', code: '// one', ...ALONE },
        },
      ]);
      expect(api.endpoints[1]?.generatedCode).to.include('"id"');
    });

    it('reads a bundle without a document whose manifest has no name', async () => {
      const api = await read({ ...manifest([route('GET', '/', 'a')], {}), 'a.rs': '' });
      expect(api.title).to.equal('Bundle');
      expect(handlers(api)).to.deep.equal({ 'GET /': 'a.rs' });
    });

    it('matches handlers by the routes of a manifest before their names', async () => {
      const api = await read({
        'openapi.yaml': PETS,
        ...manifest([route('GET', '/pets', 'get_pet'), route('GET', '/pets/{pet}', 'list_pets')], {}),
        ...BOTH,
      });
      expect(handlers(api)).to.deep.equal({
        listPets: 'handlers/get_pet.rs',
        getPet: 'handlers/list_pets.rs',
      });
      expect(api.warnings).to.deep.equal([]);
    });

    it('uses one handler for several routes of a manifest', async () => {
      const api = await read({
        'openapi.yaml': PETS,
        ...manifest([route('POST', '/pets', 'list_pets'), route('GET', '/animals', 'list_pets')], {}),
        ...BOTH,
      });
      expect(handlers(api)).to.deep.equal({
        listPets: 'handlers/list_pets.rs',
        getPet: 'handlers/get_pet.rs',
        'POST /pets': 'handlers/list_pets.rs',
        'GET /animals': 'handlers/list_pets.rs',
      });
    });

    it('finds the handler of an operation without operationId by a route of the manifest', async () => {
      const api = await read({
        'openapi.yaml': spec({ 'GET /pets': null }),
        ...manifest([route('GET', '/pets', 'all')], {}),
        'all.rs': '',
      });
      expect(handlers(api)).to.deep.equal({ 'GET /pets': 'all.rs' });
    });

    it('resolves ambiguous names of handlers by a route of the manifest', async () => {
      const api = await read({
        'openapi.yaml': PETS,
        ...manifest([route('GET', '/pets', 'list-pets')], {}),
        ...BOTH,
        'src/list-pets.rs': '',
      });
      expect(handlers(api)).to.include({ listPets: 'src/list-pets.rs' });
      expect(api.problems).to.deep.equal([]);
      expect(api.warnings).to.deep.equal(['handlers/list_pets.rs is the handler of no operation.']);
    });

    it('accepts routes of a manifest with or without the base path of the document', async () => {
      const files = {
        'openapi.yaml': spec({ 'GET /pets': 'listPets' }, { server: 'https://a.example/v1' }),
        'a.rs': '',
      };
      for (const path of ['/pets', '/v1/pets', '/pets/']) {
        const api = await read({ ...files, ...manifest([route('GET', path, 'a')], {}) });
        expect(handlers(api), path).to.deep.equal({ listPets: 'a.rs' });
      }
    });

    it('adds routes of a manifest below the base path, written with or without it', async () => {
      const files = {
        'openapi.yaml': spec({ 'GET /pets': 'listPets' }, { server: '/v1' }),
        'a.rs': '',
      };
      for (const path of ['/extra', '/v1/extra']) {
        const api = await read({ ...files, ...manifest([route('PUT', path, 'a')], {}) });
        expect(api.basePath).to.equal('/v1');
        expect(api.endpoints.map((each) => [each.name, each.path])).to.deep.equal([
          ['listPets', '/pets'],
          ['PUT /extra', '/extra'],
        ]);
      }
      const api = await read({ ...files, ...manifest([route('PUT', '/v1', 'a')], {}) });
      expect(api.endpoints.at(-1)).to.include({ name: 'PUT /', path: '/' });
    });

    it('prefers the operation with exactly the path of a route of the manifest', async () => {
      const api = await read({
        'openapi.yaml': spec({ 'GET /pets': 'short', 'GET /v1/pets': 'long' }, { server: '/v1' }),
        'a.rs': '',
        'b.rs': '',
        ...manifest([route('GET', '/v1/pets', 'a')], {}),
      });
      expect(handlers(api)).to.deep.equal({ short: null, long: 'a.rs' });
      const both = await read({
        'openapi.yaml': spec({ 'GET /pets': 'short', 'GET /v1/pets': 'long' }, { server: '/v1' }),
        'a.rs': '',
        'b.rs': '',
        ...manifest([route('GET', '/v1/v1/pets', 'a'), route('GET', '/pets', 'b')], {}),
      });
      expect(handlers(both)).to.deep.equal({ short: 'b.rs', long: 'a.rs' });
    });

    it('rejects a manifest with a route both with and without the base path', () =>
      expectRejected(
        {
          'openapi.yaml': spec({ 'GET /pets': 'listPets' }, { server: '/v1' }),
          ...manifest([route('GET', '/pets', 'a'), route('GET', '/v1/pets', 'a')], {}),
        },
        /^bundle\.yaml: routes\.1 \(GET \/v1\/pets\) matches the same requests as routes\.0 \(GET \/pets\)/,
      ));

    it('reports a missing handler that a route of the manifest names', async () => {
      const api = await read({
        'openapi.yaml': PETS,
        ...BOTH,
        ...manifest([route('GET', '/pets', 'all')], {}),
      });
      expect(handlers(api)).to.include({ listPets: null });
      expect(api.problems).to.deep.equal([
        {
          name: 'listPets',
          handler: 'all.rs',
          message:
            'bundle.yaml: routes.0 names all.rs as the handler of listPets, but there is no such file.',
        },
      ]);
      expect(api.warnings).to.deep.equal(['handlers/list_pets.rs is the handler of no operation.']);
    });

    it('uses the only handler of a bundle for routes of the manifest that name none', async () => {
      const routes = [
        { method: 'GET', path: '/a/{*rest}' },
        { method: 'POST', path: '/a' },
      ];
      const api = await read({ 'everything.rs': '// one', ...manifest(routes) });
      expect(handlers(api)).to.deep.equal({ 'GET /a/{*rest}': 'everything.rs', 'POST /a': 'everything.rs' });
      const two = await read({ 'a.rs': '', 'b.rs': '', ...manifest(routes) });
      expect(two.problems.map(({ message }) => message)).to.deep.equal(
        ['GET /a/{*rest}', 'POST /a'].map(
          (name, at) =>
            `bundle.yaml: routes.${at} names no handler for ${name}, and the bundle has 2: which one is only clear with one.`,
        ),
      );
    });

    it('rejects a manifest with two routes for the same requests', () =>
      expectRejected(
        {
          ...manifest([route('GET', '/{a}', 'a'), route('PUT', '/{a}', 'a'), route('GET', '/{b}/', 'a')]),
          'a.rs': '',
        },
        /^bundle\.yaml: routes\.2 \(GET \/\{b\}\/\) matches the same requests as routes\.0 \(GET \/\{a\}\)/,
      ));

    it('rejects a manifest with a route that is too long after the base path', () =>
      expectRejected(
        {
          'openapi.yaml': spec({ 'GET /pets': 'listPets' }, { server: `/${'b'.repeat(1500)}` }),
          ...manifest([route('GET', `/${'x'.repeat(600)}`, 'a')], {}),
        },
        /^bundle\.yaml: routes\.0: the route \/x+ after the base path \/b+ must have at most 2048 characters/,
      ));

    it('rejects a manifest with a route whose name an operation has', () =>
      expectRejected(
        { 'openapi.yaml': spec({ 'GET /a': 'GET /b' }), ...manifest([route('GET', '/b', 'a')], {}) },
        /^bundle\.yaml: routes\.0: GET \/b is also the operationId of another operation/,
      ));

    it('rejects a manifest with a route that is too long for a name', () =>
      expectRejected(
        manifest([route('GET', `/${'x'.repeat(255)}`, 'a')]),
        /^bundle\.yaml: routes\.0: the route GET \/x+ is too long/,
      ));

    it('rejects a bundle with too many operations, including those of the document', () =>
      expectRejected(
        { 'openapi.yaml': PETS, ...manifest([route('GET', '/a', 'a'), route('GET', '/b', 'a')], {}) },
        /^The bundle has 4 operations; at most 3 are allowed \(IMPORT_OPERATIONS_LIMIT\)/,
        { operations: 3 },
      ));
  });

  it('makes the policy validate from the document of a bundle on request only', async () => {
    const file = await zips.write(zipOf({ 'openapi.json': PETS, ...BOTH }));
    const { endpoints, validation } = await readBundle(file, LIMITS, 'report');
    expect(validation).to.equal('report');
    expect(endpoints.map(({ name, validate }) => [name, validate && JSON.parse(validate)])).to.deep.equal([
      ['listPets', undefined],
      ['getPet', { mode: 'report', parameters: [{ in: 'path', name: 'id', schema: { type: 'string' } }] }],
    ]);
    expect((await readBundle(file, LIMITS)).endpoints.some((endpoint) => 'validate' in endpoint)).to.equal(
      false,
    );
  });
});
