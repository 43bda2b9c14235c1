/** Installations as files, from the command line: plan, apply, export and rollback. */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { holdRow } from '../../support/applies.js';
import { type EdgeOptions, edge, startEdge } from '../../support/edge.js';
import { eventually } from '../../support/eventually.js';
import { freePort } from '../../support/ports.js';
import { type Stack, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const KEY = 'the key of the tests';

const handler = (text: string) => `use rust_edge_gateway_sdk::prelude::*;

fn handle(_req: Request) -> Response {
    Response::text(200, "${text}")
}

handler_loop!(handle);
`;

const FILES = `stack: shop
domains:
  - host: shop.test
    variables: {GREETING: hello}
endpoints:
  - host: shop.test
    method: GET
    route: /hello
    handler: src/hello.rs
  - host: shop.test
    method: GET
    route: /bye
    handler: src/bye.rs
`;

describe('edge apply', function () {
  this.timeout(300_000);
  let stack: Stack;
  let folder: TempDir;
  let env: Record<string, string>;
  let shop: string;

  before(async () => {
    folder = await tempDir('cli-apply');
    shop = join(folder.path, 'shop');
    stack = await startStack({ env: { API_KEY: KEY } });
    env = { XDG_CONFIG_HOME: join(folder.path, 'config'), EDGE_URL: stack.apiUrl, EDGE_TOKEN: KEY };
    await mkdir(join(shop, 'src'), { recursive: true });
    await mkdir(join(shop, 'target/debug'), { recursive: true });
    await writeFile(join(shop, 'target/debug/made.rs'), Buffer.from([0xff, 0xfe]));
    await writeFile(join(shop, 'edge.yaml'), FILES);
    await writeFile(join(shop, 'src/hello.rs'), handler('hello'));
    await writeFile(join(shop, 'src/bye.rs'), handler('bye'));
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  const ended = (args: string[], options: EdgeOptions = {}) => edge(args, { env, cwd: shop, ...options });
  const run = async (...args: string[]) => {
    const result = await ended(args);
    expect(result.code, `edge ${args.join(' ')}: ${result.stderr}`).to.equal(0);
    return result.stdout;
  };
  const json = async (...args: string[]) => JSON.parse(await run(...args, '--json'));
  const served = async (path: string) =>
    (await stack.gateway.get(path, { headers: { host: 'shop.test' } })).body;
  let applied: string;

  it('edge validate reports everything that is wrong in the files, with its place', async () => {
    expect(await run('validate'))
      .to.include('valid')
      .and.include('3 to create');
    await writeFile(
      join(shop, 'edge.yaml'),
      FILES.replace('route: /bye', 'rout: /bye').replace('GET', 'GETT'),
    );
    const { code, stderr, stdout } = await ended(['validate']);
    expect(code).to.equal(1);
    expect(stdout).to.equal('');
    expect(stderr)
      .to.match(/edge\.yaml:7: .*GETT|edge\.yaml:7: /)
      .and.match(/edge\.yaml:\d+: .*rout/)
      .and.include('invalid_folder');
    await writeFile(join(shop, 'edge.yaml'), FILES);
  });

  it('edge diff shows what would change, and changes nothing', async () => {
    expect(await run('diff'))
      .to.include('+ endpoint GET shop.test/hello')
      .and.include('3 to create');
    expect((await ended(['diff', '--exit-code'])).code).to.equal(2);
    expect(await json('endpoint', 'list')).to.deep.equal([]);
  });

  it('edge apply requires --yes where there is no terminal', async () => {
    const { code, stderr } = await ended(['apply']);
    expect(code).to.equal(2);
    expect(stderr).to.include('--yes');
    expect(await json('endpoint', 'list')).to.deep.equal([]);
  });

  it('edge apply applies a folder, and finds nothing to change afterwards', async () => {
    const apply = await json('apply', '--yes');
    expect(apply).to.include({ state: 'succeeded', stack: 'shop' });
    expect(await served('/hello')).to.equal('hello');
    expect(await json('apply', '--yes')).to.include({ state: 'unchanged' });
    expect((await ended(['diff', '--exit-code'])).code).to.equal(0);
  });

  it('edge apply follows an apply while the API is killed, and says where to find it when it cannot', async () => {
    const worker = stack.processes.get('worker')?.pid ?? 0;
    /** Applies this text. The worker begins when the API is there again. */
    const applied = async (text: string, key: string) => {
      await writeFile(join(shop, 'src/hello.rs'), handler(text));
      process.kill(worker, 'SIGSTOP');
      try {
        const applying = startEdge(['apply', '--yes'], { env, cwd: shop });
        await applying.says('Waiting for a worker');
        await stack.processes.get('web')?.end('SIGKILL');
        await applying.says('trying again');
        await stack.start('web', { API_KEY: key });
        process.kill(worker, 'SIGCONT');
        return await applying.result;
      } finally {
        process.kill(worker, 'SIGCONT');
      }
    };
    const followed = await applied('hello again', KEY);
    expect(followed.code, followed.stderr).to.equal(0);
    expect(followed.stdout).to.include('Applied.');
    expect(await served('/hello')).to.equal('hello again');
    const refused = await applied('hello', 'another key');
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.match(/\(unauthorized\)\n {2}The apply continues .*`edge applies`/);
    await stack.processes.get('web')?.end();
    await stack.start('web');
    await eventually(async () => expect(await served('/hello')).to.equal('hello'));
  });

  it('edge diff shows changed code, edge apply applies it, and edge rollback undoes it', async () => {
    await writeFile(join(shop, 'src/hello.rs'), handler('good day'));
    expect(await run('diff'))
      .to.include('~ endpoint GET shop.test/hello')
      .and.include('+    Response::text(200, "good day")');
    applied = (await json('apply', '--yes')).id;
    expect(await served('/hello')).to.equal('good day');
    await run('rollback', '--apply', applied, '--yes');
    expect(await served('/hello')).to.equal('hello');
    expect(await run('rollback', '--apply', applied, '--yes')).to.include(
      'all is as it was before this apply',
    );
    const [last] = await json('applies');
    expect(last).to.include({ state: 'succeeded', rollback_of: applied });
    expect((await ended(['rollback', 'x', '--apply', applied])).code).to.equal(2);
  });

  it('edge apply changes nothing when code does not compile, and shows why', async () => {
    await writeFile(join(shop, 'src/hello.rs'), handler('good day').replace('"good day"', '5'));
    const { code, stderr } = await ended(['apply', '--yes']);
    expect(code).to.equal(1);
    expect(stderr)
      .to.include('compile_failed')
      .and.include('error[E0277]')
      .and.include('src/hello.rs:4')
      .and.include('Nothing was changed');
    expect(await served('/hello')).to.equal('hello');
    await writeFile(join(shop, 'src/hello.rs'), handler('hello'));
  });

  it('edge apply removes an endpoint only with --prune', async () => {
    await writeFile(join(shop, 'edge.yaml'), FILES.slice(0, FILES.lastIndexOf('  - host')));
    expect((await ended(['diff'])).stderr).to.include('prune');
    const failed = await ended(['rollback', '--apply', 'none', '--json']);
    expect(JSON.parse(failed.stderr)).to.have.property('error');
    expect(await json('apply', '--yes')).to.include({ state: 'unchanged' });
    expect(await served('/bye')).to.equal('bye');
    expect(await run('diff', '--prune')).to.include('- endpoint GET shop.test/bye');
    await run('apply', '--prune', '--yes');
    expect(await json('endpoint', 'list')).to.have.length(1);
  });

  it('edge export writes files that change nothing, and overwrites others only with --force', async () => {
    const out = join(folder.path, 'exported');
    await run('export', '-o', out);
    expect(await readFile(join(out, 'edge.yaml'), 'utf8')).to.equal(await run('export'));
    expect((await ended(['diff', out, '--exit-code'])).code).to.equal(0);
    const again = await ended(['export', '-o', out]);
    expect(again.code).to.equal(2);
    expect(again.stderr).to.include('--force');
    await run('export', '-o', out, '--force');
    await writeFile(join(folder.path, 'a file'), '');
    for (const place of ['a file', 'a file/below']) {
      const refused = await ended(['export', '-o', join(folder.path, place), '--force']);
      expect(refused.code).to.equal(2);
      expect(refused.stderr).to.include('a file is no folder; nothing was written');
    }
    const none = await ended(['export', '--stack', 'another', '-o', out, '--force']);
    expect(none.code).to.equal(1);
    expect(none.stderr).to.include('There is nothing of the stack "another"');
  });

  it('edge apply and edge deploy accept the folder that edge init makes', async () => {
    await run('init', 'made', '--host', 'made.test');
    expect(await run('validate', 'made')).to.include('2 to create');
    await run('apply', 'made', '--yes');
    expect((await ended(['deploy'], { cwd: join(shop, 'made') })).code).to.equal(0);
    await rm(join(shop, 'made'), { recursive: true });
    await run('init', 'everywhere', '--host', '*');
    expect(await run('validate', 'everywhere')).to.include('1 to create');
    await rm(join(shop, 'everywhere'), { recursive: true });
  });

  it('edge apply makes an endpoint in a collection, whose code edge deploy deploys from then on', async () => {
    const pets = join(shop, 'pets');
    await mkdir(pets);
    await writeFile(
      join(pets, 'edge.yaml'),
      'stack: pets\ndomains: [{host: pets.test}]\ncollections: [{host: pets.test, name: all, base_path: /pets}]\n' +
        'endpoints:\n  - {host: pets.test, method: GET, collection: all, path: /one, handler: one.rs}\n' +
        '  - {host: pets.test, method: GET, route: /empty}\n',
    );
    await writeFile(join(pets, 'one.rs'), handler('one'));
    const early = await ended(['deploy'], { cwd: pets });
    expect(early.code).to.equal(2);
    expect(early.stderr).to.include('GET pets.test/pets/one').and.include('edge apply');
    expect((await ended(['domain', 'show', 'pets.test'])).code).to.equal(1);
    await run('apply', 'pets', '--yes');
    await writeFile(join(pets, 'one.rs'), handler('another'));
    expect((await ended(['deploy'], { cwd: pets })).code).to.equal(0);
    const answer = await stack.gateway.get('/pets/one', { headers: { host: 'pets.test' } });
    expect(answer.body).to.equal('another');
    await rm(pets, { recursive: true });
  });

  it('edge apply waits for its turn, and says who is before it; with --no-wait it exits with 75', async () => {
    const turns = join(shop, 'turns');
    await mkdir(turns);
    const write = (description: string) =>
      writeFile(
        join(turns, 'edge.yaml'),
        `stack: turns\nendpoints: [{host: turns.test, method: GET, route: /turns, description: ${description}}]\n`,
      );
    await write('one');
    await run('apply', 'turns', '--yes');
    const [{ id }] = await json('endpoint', 'list', '--search', '/turns');
    const row = await holdRow(stack.databaseUrl, id);
    await write('two');
    const first = startEdge(['apply', 'turns', '--yes'], { env, cwd: shop });
    await first.says('Writing');
    const other = join(shop, 'other');
    await mkdir(other);
    await writeFile(
      join(other, 'edge.yaml'),
      'stack: other\nendpoints: [{host: turns.test, method: PUT, route: /turns}]\n',
    );
    const refused = await ended(['apply', 'other', '--yes', '--no-wait']);
    expect(refused.code, refused.stderr).to.equal(75);
    expect(refused.stderr).to.include('Another apply has not ended yet');
    const second = startEdge(['apply', 'other', '--yes'], { env, cwd: shop });
    await second.says(/Waiting for its turn: 1 before it and api_key applies turns/);
    await row.release();
    expect((await first.result).code).to.equal(0);
    expect((await second.result).code).to.equal(0);
    const { code, stderr } = await ended(['rollback', 'turns.test/turns', '--no-wait']);
    expect(code).to.equal(2);
    expect(stderr).to.include('--apply');
    await rm(turns, { recursive: true });
    await rm(other, { recursive: true });
  });

  it('edge apply warns of an active service that cannot be reached', async () => {
    const away = join(shop, 'away');
    await mkdir(away);
    await writeFile(
      join(away, 'edge.yaml'),
      `stack: away\nservices: [{name: away cache, service_type: redis, config: {host: 127.0.0.1, port: ${await freePort()}}}]\n`,
    );
    const { code, stderr } = await ended(['apply', 'away', '--yes']);
    expect(code).to.equal(0);
    expect(stderr).to.include('The service "away cache" is active, but cannot be reached');
    await rm(away, { recursive: true });
  });

  it('edge diff names a file that it cannot send, and a folder without edge.yaml', async () => {
    await writeFile(join(shop, 'src/latin.rs'), Buffer.from([0x2f, 0x2f, 0xe9]));
    // Files that no handler names do not count.
    expect((await ended(['diff'])).code).to.equal(0);
    const hello = await readFile(join(shop, 'src/hello.rs'));
    await writeFile(join(shop, 'src/hello.rs'), Buffer.concat([Buffer.from('mod latin;\n'), hello]));
    const { code, stderr } = await ended(['diff']);
    expect(code).to.equal(1);
    expect(stderr).to.include('src/hello.rs:1').and.include('src/latin.rs is not UTF-8');
    await writeFile(join(shop, 'src/hello.rs'), hello);
    await rm(join(shop, 'src/latin.rs'));
    expect((await ended(['diff', 'nowhere'])).code).to.equal(2);
    expect((await ended(['diff'], { cwd: folder.path })).stderr).to.include('edge init');
    // From within the folder, its edge.yaml is meant.
    expect((await ended(['diff'], { cwd: join(shop, 'src') })).code).to.equal(0);
    expect((await ended(['aply'])).stderr).to.include('apply');
  });
});
