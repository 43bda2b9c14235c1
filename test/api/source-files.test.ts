/** The files of a source over the API, without anybody who compiles: what is kept, shown and refused. */
import { createHash } from 'node:crypto';
import type { Static } from '@sinclair/typebox';
import { expect } from 'chai';
import type { EndpointView, ListedEndpoint, SourceFile } from '../../src/api/endpoints/endpoints.schema.js';
import type { FileContents } from '../../src/model/source-files.js';
import { differences } from '../../src/store/audit.js';
import { dropUnusedSourceFiles } from '../../src/store/source-files.js';
import { startApi, type TestApi } from '../support/api.js';
import { planOf } from '../support/applies.js';
import { expectData, expectFailure } from '../support/expect.js';
import { multipart } from '../support/form.js';
import { BESIDE, ENTRY, helloOf } from '../support/source-folders.js';
import { zipOf } from '../support/zip.js';

type Endpoint = Static<typeof EndpointView>;
type Files = Static<typeof SourceFile>[];

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');

describe('the files of a source', () => {
  let api: TestApi;
  let count = 0;
  before(async () => {
    api = await startApi({ config: { SOURCE_FILES_LIMIT: 10 } });
  });
  after(() => api.close());

  const create = async (more: object): Promise<Endpoint> => {
    const path = `/files/${++count}`;
    const endpoint = { name: path, path, method: 'GET', domain: '*', ...more };
    return expectData<Endpoint>(await api.post('/api/endpoints', endpoint), 201);
  };
  const stored = async (text: string) =>
    (await api.store.knex('source_files').where({ digest: sha256(text) })).length;

  it('keeps the files of an endpoint, and shows them with their contents', async () => {
    const { id, ...made } = await create({ code: helloOf('a'), entry: ENTRY, files: BESIDE });
    expect(made).to.deep.include({ entry: ENTRY, files: BESIDE });
    const shown = expectData<Endpoint>(await api.get(`/api/endpoints/${id}`));
    expect(shown).to.deep.include({ entry: ENTRY, files: BESIDE });
    const files = expectData<Files>(await api.get(`/api/endpoints/${id}/files`));
    expect(files.map(({ path }) => path)).to.deep.equal(Object.keys(BESIDE));
    const text = String(BESIDE['page.html']);
    expect(files[0]).to.deep.equal({
      ...{ path: 'page.html', digest: sha256(text), size: text.length, shared_with: 0 },
    });
  });

  it('shows no contents of files in lists', async () => {
    const { id } = await create({ files: { 'a.txt': 'listed' } });
    const list = expectData<Static<typeof ListedEndpoint>[]>(await api.get('/api/endpoints?limit=1000'));
    const listed = list.find((one) => one.id === id);
    expect(listed?.files).to.deep.equal({ 'a.txt': { digest: sha256('listed'), size: 6 } });
  });

  it('replaces all files with those of a PUT, keeps them without, and clears them with null', async () => {
    const { id } = await create({ code: '// 1', files: { 'a.rs': '// a', 'b.rs': '// b' } });
    const put = async (body: object) => expectData<Endpoint>(await api.put(`/api/endpoints/${id}`, body));
    expect((await put({ code: '// 2' })).files).to.deep.equal({ 'a.rs': '// a', 'b.rs': '// b' });
    expect((await put({ files: { 'b.rs': '// c' } })).files).to.deep.equal({ 'b.rs': '// c' });
    const text = { headers: { 'content-type': 'text/x-rust' } };
    const byText = await api.put(`/api/endpoints/${id}/code`, '// 3', text);
    expect(expectData<Endpoint>(byText)).to.deep.include({ code: '// 3', files: { 'b.rs': '// c' } });
    expect(await put({ files: null, entry: null })).to.deep.include({ files: {}, entry: 'handler.rs' });
  });

  it('keeps what many endpoints have once, and says how many have it', async () => {
    const text = `// shared ${Date.now()}`;
    const ids: string[] = [];
    for (let number = 0; number < 3; number++) {
      const { id } = await create({
        code: `// ${number}`,
        files: { 'shared.rs': text, 'own.rs': `// ${number}` },
      });
      ids.push(id);
    }
    expect(await stored(text)).to.equal(1);
    const files = expectData<Files>(await api.get(`/api/endpoints/${ids[0]}/files`));
    expect(files.map(({ path, shared_with }) => [path, shared_with])).to.deep.equal([
      ['own.rs', 0],
      ['shared.rs', 2],
    ]);
  });

  it('deletes contents that no source has had for an hour, and no others', async () => {
    const texts = ['kept', 'replaced', 'came back'].map((name) => `// ${name} ${Date.now()}`);
    const [kept = '', replaced = '', cameBack = ''] = texts;
    const { id } = await create({ files: { 'a.rs': kept, 'b.rs': replaced, 'c.rs': cameBack } });
    await api.put(`/api/endpoints/${id}`, { files: { 'a.rs': kept } });
    const later = async () => {
      await dropUnusedSourceFiles(api.store);
      await api.store.knex.raw("UPDATE source_files SET unused_since = unused_since - interval '61 minutes'");
    };
    await later();
    expect(await Promise.all(texts.map(stored))).to.deep.equal([1, 1, 1]);
    await api.put(`/api/endpoints/${id}`, { files: { 'a.rs': kept, 'c.rs': cameBack } });
    await dropUnusedSourceFiles(api.store);
    expect(await Promise.all(texts.map(stored))).to.deep.equal([1, 0, 1]);
  });

  const refused: readonly (readonly [title: string, body: object, message: RegExp])[] = [
    [
      'a path that leaves the folder',
      { files: { '../x.rs': '' } },
      /^body\.files\["\.\.\/x\.rs"\]: must not leave/,
    ],
    ['an absolute path', { files: { '/x.rs': '' } }, /relative/],
    ['a path with a backslash', { files: { 'a\\x.rs': '' } }, /"\/" between folders/],
    ['a path without a name', { files: { 'a//x.rs': '' } }, /empty name/],
    [
      'a path in more folders than rustc needs',
      { files: { [`${'a/'.repeat(32)}x`]: '' } },
      /at most 31 folders/,
    ],
    ['a path that is a drive', { files: { 'a:b.txt': '' } }, /must not have any of/],
    ['a path that is a pattern', { files: { 'a/**': '' } }, /must not have any of/],
    ['a path whose letters are decomposed', { files: { 'cafe\u0301.txt': '' } }, /must be in Unicode NFC/],
    ['an empty path', { files: { '': '' } }, /must not be empty/],
    [
      'paths that differ in case',
      { files: { 'A.rs': '', 'a.rs': '' } },
      /same file where case does not count/,
    ],
    ['a file that is also a folder', { files: { a: '', 'a/b': '' } }, /is a file, and the folder of/],
    [
      'the path of the code',
      { files: { 'handler.rs': '' } },
      /"handler\.rs" is the path of the code: give one of them another \("entry"\)/,
    ],
    ['Rust that is not UTF-8', { files: { 'a.rs': { base64: '/w==' } } }, /"a\.rs" must be UTF-8/],
    ['what is no base64', { files: { a: { base64: 'x' } } }, /base64/],
    ['a file by its digest', { files: { a: { digest: sha256('') } } }, /digest|base64/],
    ['more files than the setting allows', { files: manyFiles(11) }, /SOURCE_FILES_LIMIT/],
    [
      'files in more folders than the setting allows',
      { files: { 'a/b/c/d/e/f/g/h/i/j/x': '' } },
      /has 1 files in 10 folders; at most 10 of both are allowed \(SOURCE_FILES_LIMIT\)/,
    ],
    ['an entry that is no Rust', { entry: 'a.txt' }, /must end with "\.rs"/],
    ['an entry that leaves the folder', { entry: '../a.rs' }, /must not leave/],
    ['an entry that is an option of rustc', { entry: '-Cx.rs' }, /must not begin with/],
    ['an entry that is a file with options', { entry: '@a.rs' }, /must not begin with/],
  ];
  for (const [title, body, message] of refused)
    it(`refuses ${title} as a file of a source, and changes nothing`, async () => {
      const text = `// before ${title}`;
      const { id } = await create({ code: '// code', files: { 'before.rs': text } });
      const contents = await api.store.knex('source_files').count();
      expectFailure(
        await api.put(`/api/endpoints/${id}`, { code: '// new', ...body }),
        'invalid_input',
        message,
      );
      expectFailure(await api.post(`/api/endpoints/${id}/deploy`, body), 'invalid_input', message);
      const shown = expectData<Endpoint>(await api.get(`/api/endpoints/${id}`));
      expect(shown).to.deep.include({ code: '// code', files: { 'before.rs': text } });
      expect(await api.store.knex('source_files').count()).to.deep.equal(contents);
    });

  it('stores nothing of a request that is refused for something else than its files', async () => {
    const { id } = await create({ entry: 'src/main.rs' });
    const nowhere = '00000000-0000-4000-8000-000000000000';
    const text = `// refused ${Date.now()}`;
    const files = { 'a.txt': text };
    const place = { name: 'nowhere', path: '/nowhere', method: 'GET', domain: '*' };
    expectFailure(
      await api.put(`/api/endpoints/${id}`, { files: { ...files, 'src/main.rs': '' } }),
      'invalid_input',
      /is the path of the code/,
    );
    for (const refused of [
      api.put(`/api/endpoints/${nowhere}`, { files }),
      api.post(`/api/endpoints/${nowhere}/deploy`, { files }),
      api.post('/api/endpoints', { ...place, collection_id: nowhere, files }),
    ])
      expectFailure(await refused, 'not_found');
    expect(await stored(text)).to.equal(0);
  });

  it('keeps of changed files in the audit those that differ', async () => {
    const { id } = await create({ files: { 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c' } });
    expectData(
      await api.put(`/api/endpoints/${id}`, { files: { 'a.txt': 'a', 'b.txt': 'B', 'd.txt': 'd' } }),
    );
    const [entry] = expectData<{ before: { files: object }; after: { files: object } }[]>(
      await api.get(`/api/audit?object_id=${id}&limit=1`),
    );
    expect(Object.keys(entry?.before.files ?? {})).to.have.members(['b.txt', 'c.txt']);
    expect(Object.keys(entry?.after.files ?? {})).to.have.members(['b.txt', 'd.txt']);
  });

  it('says in the audit how many files more differ, and first what was there before', () => {
    const file = (digest: string) => ({ digest, size: 1 });
    const added = Object.fromEntries(Array.from({ length: 101 }, (_, at) => [`a${at}.txt`, file('a')]));
    const { before, after } = differences(
      { files: { 'z.rs': file('old') } },
      { files: { ...added, 'z.rs': file('new') } },
    );
    expect(before).to.deep.equal({ files: { 'z.rs': file('old') }, more_files: 2 });
    expect(after?.['files']).to.have.property('z.rs').that.deep.equals(file('new'));
    expect(Object.keys(after?.['files'] ?? {})).to.have.length(100);
    expect(after).to.include({ more_files: 2 });
  });

  it('refuses files among which the code of an endpoint cannot be', async () => {
    const { id } = await create({ files: { 'a.rs': '' }, entry: 'src/main.rs' });
    expectData(await api.put(`/api/endpoints/${id}`, { files: { 'handler.rs': '', 'a.rs': '' } }));
    expectFailure(await api.put(`/api/endpoints/${id}`, { entry: 'A.rs' }), 'invalid_input', /same file/);
    const deep = { entry: 'a/b/c/d/e/f/g/h/i/x.rs' };
    expectFailure(await api.put(`/api/endpoints/${id}`, deep), 'invalid_input', /has 2 files in 9 folders/);
  });

  it('exports sources with files as a folder that changes nothing when it is applied', async () => {
    const host = 'exported.example';
    expectData(await api.post('/api/domains', { name: host, host, stack: 'exported' }), 201);
    const other = { ...BESIDE, 'page.html': '<b>', 'data/rows.sql': 'SELECT 1' };
    const on = { domain: host, code: helloOf('x'), stack: 'exported' };
    await create({ ...on, entry: ENTRY, files: BESIDE });
    await create({ ...on, entry: 'src/other.rs', files: { ...BESIDE, 'src/more.txt': 'not named' } });
    await create({ ...on, entry: ENTRY, files: other });
    await create({ ...on, code: '// alone', entry: 'src/alone.rs' });
    await create({ ...on, code: '// plain' });
    // What looks like the folders that the export makes for those that cannot be together.
    await create({
      ...on,
      code: '// named so',
      files: { 'sources-2/handler.rs': '// 2', 'sources-3': '// 3' },
    });
    await create({ ...on, code: '// beside it', files: { 'beside.txt': '1' } });
    const { files } = expectData<{ files: FileContents }>(await api.get(`/api/export?domain=${host}`));
    expect(files).to.include.keys('src/hello.rs', 'src/other.rs', 'src/logo.bin');
    expect((await planOf(api, files)).changes).to.deep.equal([]);
    const changed = { ...files, 'shared/greet.rs': 'pub fn hello() -> &\'static str { "hi" }' };
    const { changes } = await planOf(api, changed);
    expect(changes.map(({ fields }) => fields.map(({ path }) => path))).to.deep.equal([
      ['files.shared/greet.rs'],
      ['files.shared/greet.rs'],
    ]);
  });

  it('says all that is wrong with the files of a folder, with their places', async () => {
    const endpoint = (handler: string, more: object = {}) => ({
      host: '*',
      method: 'GET',
      route: `/${handler}`,
      handler,
      ...more,
    });
    const edge = {
      stack: 'wrong-files',
      endpoints: [
        endpoint('a.rs'),
        endpoint('b.rs', { include: ['none/*.sql'] }),
        endpoint('c.rs', { root: 'src' }),
        endpoint('d.rs', { include: ['../x'] }),
        endpoint('r/@e.rs', { root: 'r' }),
        endpoint('r/-Cx.rs', { root: 'r' }),
      ],
    };
    const files = {
      'edge.yaml': JSON.stringify(edge),
      'a.rs': '\nmod gone;',
      'b.rs': 'mod a;',
      'c.rs': '',
      'd.rs': '',
      'r/@e.rs': '',
      'r/-Cx.rs': '',
    };
    const response = await api.post('/api/apply?dry_run=true', { files });
    expectFailure(
      response,
      'invalid_folder',
      /^a\.rs:2: `mod gone`: there is no gone\.rs, and no gone\/mod\.rs$/m,
    );
    expectFailure(response, 'invalid_folder', /^b\.rs: no file matches "none\/\*\.sql", which it includes$/m);
    expectFailure(response, 'invalid_folder', /^the handler c\.rs is outside of its root src$/m);
    expectFailure(response, 'invalid_folder', /include.*must be a path within the folder of the project/m);
    for (const at of [4, 5]) {
      const message = new RegExp(`endpoints\\.${at}: handler: entry: must not begin with "-" or "@"$`, 'm');
      expectFailure(response, 'invalid_folder', message);
    }
  });

  const spec = {
    openapi: '3.0.3',
    info: { title: 'Modules', version: '1' },
    paths: { '/m': { get: { operationId: 'hello', responses: { 200: { description: 'ok' } } } } },
  };
  const wrong: readonly (readonly [
    title: string,
    files: Readonly<Record<string, string | Buffer>>,
    message: RegExp,
  ])[] = [
    [
      'modules in a circle',
      { 'src/hello.rs': 'mod a;', 'src/a.rs': '#[path = "hello.rs"] mod b;' },
      /src\/a\.rs:1: `mod b`: modules in a circle: src\/hello\.rs -> src\/a\.rs -> src\/hello\.rs/,
    ],
    [
      'a module that is not UTF-8',
      { 'src/hello.rs': '\nmod a;', 'src/a.rs': Buffer.from([0xff]) },
      /src\/hello\.rs:2: `mod a`: src\/a\.rs is not UTF-8/,
    ],
    [
      'modules that differ in case',
      { 'src/hello.rs': 'mod a;\n#[path = "A.rs"] mod b;', 'src/a.rs': '', 'src/A.rs': '' },
      /"src\/(a|A)\.rs" and "src\/(a|A)\.rs" are the same file where case does not count/,
    ],
    [
      'more files than the setting allows',
      {
        'src/hello.rs': Array.from({ length: 11 }, (_, number) => `mod m${number};`).join('\n'),
        ...Object.fromEntries(Array.from({ length: 11 }, (_, number) => [`src/m${number}.rs`, ''])),
      },
      /has 11 files; at most 10 are allowed \(SOURCE_FILES_LIMIT\)/,
    ],
    [
      'files that are too large',
      { 'src/hello.rs': 'const A: &str = include_str!("a");', 'src/a': 'x'.repeat(4 * 1024 * 1024 + 1) },
      /has 4194305 bytes; at most 4194304 are allowed \(API_BODY_LIMIT_BYTES\)/,
    ],
  ];
  for (const [title, files, message] of wrong)
    it(`refuses ${title} in a folder and in a bundle, and stores nothing`, async () => {
      const before = await api.store.knex('source_files').count();
      const endpoint = { host: '*', method: 'GET', route: '/wrong', handler: 'src/hello.rs' };
      const edge = JSON.stringify({ stack: 'wrong-sources', endpoints: [endpoint] });
      const zip = { headers: { 'content-type': 'application/zip' } };
      const folder = zipOf({ 'edge.yaml': edge, ...files });
      expectFailure(await api.post('/api/apply?dry_run=true', folder, zip), 'invalid_folder', message);
      const bundle = zipOf({ 'openapi.json': JSON.stringify(spec), ...files });
      const { body, headers } = multipart([{ name: 'bundle', filename: 'a.zip', content: bundle }]);
      const response = await api.post('/api/import/bundle?domain=wrong.example', body, { headers });
      expectFailure(response, 'invalid_bundle', message);
      expect(await api.store.knex('source_files').count()).to.deep.equal(before);
      expect(await api.store.knex('endpoints').where({ domain: 'wrong.example' })).to.deep.equal([]);
    });

  it('takes files of Rust in a bundle that handlers have as modules, and warns of others', async () => {
    const folder = Object.entries(BESIDE).map(([path, content]): [string, string | Buffer] => [
      path,
      typeof content === 'string' ? content : Buffer.from(content.base64, 'base64'),
    ]);
    const zip = zipOf({
      'openapi.json': JSON.stringify(spec),
      [ENTRY]: helloOf('bundle'),
      ...Object.fromEntries(folder),
      'lib/unused.rs': '// nobody',
    });
    const form = multipart([{ name: 'bundle', filename: 'a.zip', content: zip }]);
    const response = await api.post('/api/import/bundle?domain=modules.example', form.body, {
      headers: form.headers,
    });
    const imported = expectData<{ endpoints: { id: string }[] }>(response);
    const shown = expectData<Endpoint>(await api.get(`/api/endpoints/${imported.endpoints[0]?.id}`));
    expect(shown).to.deep.include({ entry: ENTRY, files: BESIDE });
    const { warnings } = response.body as unknown as { warnings: string[] };
    expect(warnings.filter((text) => text.includes('.rs'))).to.deep.equal([
      'lib/unused.rs is not read: handlers must be in handlers/, in src/ or at the root, or all in one folder.',
    ]);
  });
});

function manyFiles(count: number): FileContents {
  return Object.fromEntries(Array.from({ length: count }, (_, number) => [`${number}.txt`, '']));
}
