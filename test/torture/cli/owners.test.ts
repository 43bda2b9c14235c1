/** What `edge deploy` makes belongs to the stack of its folder, so that `edge apply` goes on with it, and back. */
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { edge, type RunningEdge, startEdge } from '../../support/edge.js';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';

describe('a folder with a stack, deployed and applied', function () {
  this.timeout(300_000);
  let stack: Stack;
  let folder: TempDir;
  let env: Record<string, string>;
  let dev: RunningEdge | undefined;

  before(async () => {
    folder = await tempDir('owners');
    stack = await startStack();
    env = { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: stack.apiUrl, USER: 'ada' };
  });
  after(async () => {
    await dev?.end();
    await stack?.close();
    await folder?.remove();
  });

  const ended = (cwd: string, ...args: string[]) => edge(args, { env, cwd: join(folder.path, cwd) });
  const run = async (cwd: string, ...args: string[]) => {
    const result = await ended(cwd, ...args);
    expect(result.code, `edge ${args.join(' ')}: ${result.stderr}`).to.equal(0);
    return result.stdout;
  };
  const json = async (cwd: string, ...args: string[]) => JSON.parse(await run(cwd, ...args, '--json'));
  const edit = async (file: string, from: string | RegExp, to: string) => {
    const path = join(folder.path, file);
    await writeFile(path, (await readFile(path, 'utf8')).replace(from, to));
  };
  const ownerOf = async (kind: string, name: string) => (await json('.', kind, 'show', name)).stack;
  const fails = async (cwd: string, ...args: string[]) => {
    const { code, stderr } = await ended(cwd, ...args);
    expect(code, stderr).to.equal(1);
    return stderr;
  };

  it('edge apply updates what edge deploy has made', async () => {
    await run('.', 'init', 'shop', '--host', 'shop.test');
    await run('shop', 'deploy');
    expect(await ownerOf('domain', 'shop.test')).to.equal('shop');
    expect(await ownerOf('endpoint', 'GET shop.test/hello/{name}')).to.equal('shop');
    expect((await ended('shop', 'diff', '--exit-code')).code).to.equal(0);
    await edit('shop/src/hello.rs', 'Hello, {name}', 'Servus, {name}');
    expect(await json('shop', 'apply', '--yes')).to.include({ state: 'succeeded' });
  });

  it('edge deploy updates what edge apply has made', async () => {
    await run('.', 'init', 'pets', '--host', 'pets.test');
    await run('pets', 'apply', '--yes');
    await edit('pets/src/hello.rs', 'Hello, {name}', 'Servus, {name}');
    await run('pets', 'deploy');
    expect(await json('pets', 'apply', '--yes')).to.include({ state: 'unchanged' });
  });

  it('edge deploy and edge apply work on localhost, where several folders have endpoints', async () => {
    await run('.', 'init', 'here');
    await run('.', 'init', 'there');
    await edit('there/edge.yaml', '/hello/', '/there/');
    // As the sample of `npm run up`: its endpoint is for all hosts.
    const make = async (path: string, body: object) =>
      expectData<{ id: string }>(await stack.api.post(path, body), 201).id;
    const domain_id = await make('/api/domains', { name: 'Local', host: 'localhost' });
    const collection_id = await make('/api/collections', { name: 'Samples', domain_id });
    const sample = { name: 'hello', method: 'GET', path: '/hello/{name}', domain: '*', collection_id };
    await make('/api/endpoints', sample);
    for (const name of ['here', 'there'])
      for (const made of [true, false]) {
        const [deployed] = await json(name, 'deploy');
        expect(deployed).to.include({ created: made, domain_created: false });
      }
    expect(await ownerOf('domain', 'localhost')).to.equal(null);
    for (const name of ['here', 'there'])
      expect(await json(name, 'apply', '--yes', '--prune')).to.include({ state: 'unchanged' });
  });

  it('edge deploy refuses endpoints of another stack, and adopts none that belongs to no stack', async () => {
    await mkdir(join(folder.path, 'other/src'), { recursive: true });
    const file = (head: string) => `${head}endpoints:
  - {host: shop.test, method: GET, route: "/hello/{name}", handler: src/hello.rs}\n`;
    const code = await readFile(join(folder.path, 'pets/src/hello.rs'), 'utf8');
    await writeFile(join(folder.path, 'other/src/hello.rs'), code.replace('Servus', 'Moin'));
    for (const head of ['', 'stack: other\n']) {
      await writeFile(join(folder.path, 'other/edge.yaml'), file(head));
      expect(await fails('other', 'deploy')).to.match(/belongs to the stack "shop"[\s\S]*apply_conflict/);
    }
    expect(await json('shop', 'apply', '--yes')).to.include({ state: 'unchanged' });
    const made = { name: 'E', path: '/nobodys', method: 'GET', domain: 'shop.test' };
    expect((await stack.api.post('/api/endpoints', made)).status).to.equal(201);
    await writeFile(
      join(folder.path, 'other/edge.yaml'),
      file('stack: other\n').replace('/hello/{name}', '/nobodys'),
    );
    await run('other', 'deploy');
    expect(await ownerOf('endpoint', 'GET shop.test/nobodys')).to.equal(null);
    expect(await fails('other', 'apply', '--yes')).to.include('belongs to no stack');
  });

  it('edge deploy and edge apply send no file from outside of the folder', async () => {
    await run('.', 'init', 'outside', '--host', 'outside.test');
    await writeFile(join(folder.path, 'key.rs'), 'the private key');
    await symlink(join(folder.path, 'key.rs'), join(folder.path, 'outside/src/link.rs'));
    for (const handler of ['../key.rs', join(folder.path, 'key.rs'), 'src/link.rs']) {
      await edit('outside/edge.yaml', /handler: .*/, `handler: ${handler}`);
      const said = await fails('outside', 'deploy');
      expect(said).to.include('is outside of the folder').and.not.include('the private key');
      await fails('outside', 'apply', '--yes');
    }
    expect((await ended('.', 'domain', 'show', 'outside.test')).code).to.equal(1);
  });

  it('edge dev keeps the endpoints on its own host out of the stack', async () => {
    dev = startEdge(['dev', '--no-logs'], { env, cwd: join(folder.path, 'shop') });
    await dev.says(/live GET http:\/\/ada-dev\.localhost/);
    await dev.end();
    dev = undefined;
    expect(await ownerOf('domain', 'ada-dev.localhost')).to.equal(null);
    expect(await ownerOf('endpoint', 'GET ada-dev.localhost/hello/{name}')).to.equal(null);
    expect(await json('shop', 'apply', '--yes', '--prune')).to.include({ state: 'unchanged' });
  });
});
