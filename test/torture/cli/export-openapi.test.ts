/** OpenAPI documents from the command line: export, and import again, with files applied in between. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { edge } from '../../support/edge.js';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const EXPORT = ['export', '--openapi', '--domain', 'pets.test'];
const KEY = 'the key of the tests';
const HOST = 'pets.test';
const RESPONSES = { 200: { description: 'ok', 'x-yes': ['yes', '1.0', '<<', 'a: b\n c'] } };
const HANDLER = `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    Response::text(200, "pets")
}

handler_loop!(handle);
`;
const documentOf = (title: string, path: string) => ({
  openapi: '3.1.0',
  info: { title, version: '2' },
  tags: [{ name: 'pets' }],
  paths: { [path]: { get: { operationId: `get${title}`, summary: 'Shows', responses: RESPONSES } } },
});

describe('edge export --openapi', function () {
  this.timeout(300_000);
  let stack: Stack;
  let folder: TempDir;
  let env: Record<string, string>;

  before(async () => {
    folder = await tempDir('cli-openapi');
    stack = await startStack({ env: { API_KEY: KEY } });
    env = { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: stack.apiUrl, EDGE_TOKEN: KEY };
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  const ended = (...args: string[]) => edge(args, { env, cwd: folder.path });
  const run = async (...args: string[]) => {
    const result = await ended(...args);
    expect(result.code, `edge ${args.join(' ')}: ${result.stderr}`).to.equal(0);
    return result;
  };
  const json = async (...args: string[]) => JSON.parse((await run(...args, '--json')).stdout);
  const exported = (...args: string[]) => run(...EXPORT, ...args);
  const file = (name: string) => readFile(join(folder.path, name), 'utf8');

  it('edge export --openapi requires --domain, and refuses options for files', async () => {
    for (const [args, message] of [
      [['--openapi'], /Give --domain/],
      [['--openapi', '--domain', HOST, '--stack', 's'], /--openapi and --stack/],
      [['--collection', 'a/b'], /--collection needs --openapi/],
    ] as const) {
      const { code, stderr, stdout } = await ended('export', ...args);
      expect({ code, stdout }).to.deep.equal({ code: 2, stdout: '' });
      expect(stderr).to.match(message);
    }
    const { code, stderr } = await ended('export', '--openapi', '--domain', HOST);
    expect(code).to.equal(1);
    expect(stderr).to.include('no endpoints that a document could have');
  });

  it('edge export --openapi writes an imported document, which changes nothing when imported again', async () => {
    const headers = { authorization: `Bearer ${KEY}` };
    expectData(await stack.api.post('/api/domains', { name: HOST, host: HOST }, { headers }), 201);
    const document = documentOf('Pets', '/pets');
    await writeFile(join(folder.path, 'pets.json'), JSON.stringify(document));
    await run('import', 'openapi', 'pets.json', '--domain', HOST, '--create-collection');
    const { stdout, stderr } = await exported();
    expect(JSON.parse(stdout)).to.deep.equal(document);
    const options = /edge import openapi FILE (.*) changes nothing/.exec(stderr)?.[1];
    expect(options).to.equal(`--domain ${HOST} --collection "${HOST}/Pets"`);
    await exported('-o', 'out/pets.yaml');
    expect(parse(await file('out/pets.yaml'))).to.deep.equal(document);
    const again = ['import', 'openapi', 'out/pets.yaml', '--domain', HOST, '--collection', `${HOST}/Pets`];
    expect((await run(...again, '--dry-run')).stdout).to.match(/unchanged\n/);
    expect((await ended('export', '--openapi', '--domain', HOST, '-o', 'out/pets.yaml')).code).to.equal(2);
    await exported('-o', 'out/pets.yaml', '--force');
  });

  it('edge export --openapi writes several documents into a folder', async () => {
    await writeFile(join(folder.path, 'dogs.json'), JSON.stringify(documentOf('Dogs', '/dogs')));
    await run('import', 'openapi', 'dogs.json', '--domain', HOST);
    const { code, stderr, stdout } = await ended('export', '--openapi', '--domain', HOST);
    expect({ code, stdout }).to.deep.equal({ code: 2, stdout: '' });
    expect(stderr).to.include('There are 2 documents: "Dogs", "Pets"');
    await exported('-o', 'all');
    expect((await readdir(join(folder.path, 'all'))).sort()).to.deep.equal(['Dogs.json', 'Pets.json']);
    const { stdout: one } = await exported('--collection', `${HOST}/Pets`);
    expect(JSON.parse(one)).to.deep.equal(documentOf('Pets', '/pets'));
    const { documents } = await json(...EXPORT);
    expect(documents).to.have.lengthOf(2);
  });

  it('edge export --openapi keeps the details of an imported document after an apply', async () => {
    // The code of an import has the description in it.
    const { documents } = await json(...EXPORT);
    for (const { id } of (await json('endpoint', 'list')) as { id: string }[]) {
      const headers = { authorization: `Bearer ${KEY}` };
      expectData(await stack.api.put(`/api/endpoints/${id}`, { code: HANDLER }, { headers }));
    }
    expect((await json(...EXPORT)).documents).to.deep.equal(documents);
    await mkdir(join(folder.path, 'files'));
    await run('export', '--domain', HOST, '-o', 'files');
    const text = await file('files/edge.yaml');
    expect(text).to.not.include('tags');
    await writeFile(
      join(folder.path, 'files/edge.yaml'),
      text.replaceAll('description: Shows', 'description: Has'),
    );
    await run('apply', 'files', '--yes', '--adopt');
    const { stdout } = await exported('--collection', `${HOST}/Pets`);
    const { summary: _, ...operation } = documentOf('Pets', '/pets').paths['/pets']?.get ?? {};
    expect(JSON.parse(stdout)).to.deep.equal({
      ...documentOf('Pets', '/pets'),
      paths: { '/pets': { get: { ...operation, description: 'Has' } } },
    });
  });
});
