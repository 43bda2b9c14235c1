/** `edge` against the real processes: from a folder to a live answer, and what belongs to it. */
import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type EdgeOptions, edge, startEdge } from '../support/edge.js';
import { eventually } from '../support/eventually.js';
import { bundleOf } from '../support/examples.js';
import { holdBuilds } from '../support/held-builds.js';
import { type Stack, startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';

const KEY = 'the key of the tests';

describe('edge', function () {
  this.timeout(300_000);
  let stack: Stack;
  let folder: TempDir;
  let env: Record<string, string>;

  before(async () => {
    folder = await tempDir('cli');
    stack = await startStack({ env: { API_KEY: KEY } });
    env = { XDG_CONFIG_HOME: join(folder.path, 'config') };
  });
  after(async () => {
    await stack?.close();
    await folder?.remove();
  });

  const project = () => join(folder.path, 'shop');
  /** Runs a command that must succeed. */
  const run = async (args: string[], options: EdgeOptions = {}) => {
    const result = await edge(args, { env, ...options });
    expect(result.code, `edge ${args.join(' ')}: ${result.stderr}`).to.equal(0);
    return result.stdout;
  };
  const json = async (args: string[], options: EdgeOptions = {}) =>
    JSON.parse(await run([...args, '--json'], options));
  const inProject = () => ({ env, cwd: project() });
  const handler = (text: string) => `use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    info!("asked for {}", req.path_param("name").cloned().unwrap_or_default());
    Response::ok(json!({"message": format!("${text} {}", req.path_param("name").cloned().unwrap_or_default())}))
}

handler_loop!(handle);
`;

  it('edge login keeps a token from stdin where only its owner can read it', async () => {
    const said = await run(['login', `${stack.apiUrl}/api/`, '--name', 'local'], { env, stdin: `${KEY}\n` });
    expect(said).to.include('Signed in').and.include('API_KEY').and.not.include(KEY);
    const file = join(folder.path, 'config/edge/config.json');
    expect((await stat(file)).mode & 0o777).to.equal(0o600);
    expect((await stat(join(folder.path, 'config/edge'))).mode & 0o777).to.equal(0o700);
    expect(JSON.parse(await readFile(file, 'utf8'))).to.deep.equal({
      current: 'local',
      contexts: { local: { url: stack.apiUrl, token: KEY } },
    });
    expect(await json(['whoami'])).to.include({ kind: 'api_key', context: 'local', url: stack.apiUrl });
  });

  it('edge login refuses a wrong token, and keeps nothing', async () => {
    const before = await run(['context', 'list', '--json']);
    const { code, stderr } = await edge(['login', stack.apiUrl, '--name', 'wrong'], { env, stdin: 'wrong' });
    expect(code).to.equal(1);
    expect(stderr).to.include('unauthorized').and.include('Nothing was kept');
    expect((await edge(['login', stack.apiUrl], { env, stdin: '' })).code).to.equal(2);
    expect(await run(['context', 'list', '--json'])).to.equal(before);
  });

  it('edge login says when a URL has the port of the endpoints, not that of the API', async () => {
    const { code, stderr } = await edge(['login', stack.gatewayUrl], { env, stdin: KEY });
    expect(code).to.equal(1);
    expect(stderr).to.include('the port of its endpoints').and.include('(not_the_api)');
  });

  it('edge context lists contexts without tokens, switches to another, and removes one', async () => {
    await run(['login', stack.apiUrl, '--name', 'second'], { env, stdin: KEY });
    const listed = await run(['context', 'list']);
    expect(listed)
      .to.match(/\* +second/)
      .and.not.include(KEY);
    await run(['context', 'use', 'local']);
    await run(['context', 'rm', 'second', '--yes']);
    expect((await json(['context', 'list'])).map((one: { name: string }) => one.name)).to.deep.equal([
      'local',
    ]);
    const { code, stderr } = await edge(['context', 'use', 'lokal'], { env });
    expect(code).to.equal(2);
    expect(stderr).to.include('There are: local');
  });

  it('EDGE_URL and EDGE_TOKEN override a context, whose token is sent to no other URL', async () => {
    const other = { XDG_CONFIG_HOME: join(folder.path, 'empty') };
    const given = { ...other, EDGE_URL: stack.apiUrl, EDGE_TOKEN: KEY };
    expect(await json(['whoami'], { env: given })).to.include({ context: null, kind: 'api_key' });
    const without = await edge(['endpoint', 'list'], { env: { ...other, EDGE_URL: stack.apiUrl } });
    expect(without.code).to.equal(1);
    expect(without.stderr)
      .to.include('unauthorized')
      .and.include('edge login')
      .and.match(/request id: \S+/);
    // The same server by another name is another gateway.
    const aliased = { ...env, EDGE_URL: stack.apiUrl.replace('127.0.0.1', 'localhost') };
    expect((await edge(['endpoint', 'list'], { env: aliased })).stderr).to.include('unauthorized');
  });

  it('edge init and edge deploy make a folder, its domain and its endpoint, which is served', async () => {
    await run(['init', 'shop', '--host', 'shop.test'], { env, cwd: folder.path });
    expect((await edge(['init', 'shop'], { env, cwd: folder.path })).code).to.equal(2);
    await writeFile(join(project(), 'src/hello.rs'), handler('Hello'));
    const early = await edge(['deploy'], { ...inProject(), env: { ...env, EDGE_TOKEN: 'wrong' } });
    expect(early.stderr).to.include('unauthorized').and.not.include('compiling');
    const [first] = await json(['deploy', '-m', 'the first'], inProject());
    expect(first).to.include({ endpoint: 'GET shop.test/hello/{name}', created: true, version: 1 });
    const answer = await stack.gateway.get('/hello/Ada', { headers: { host: 'shop.test' } });
    expect(answer.body).to.deep.equal({ message: 'Hello Ada' });
    const back = await edge(['rollback'], inProject());
    expect(back.stderr).to.include('nothing_to_roll_back_to').and.include('edge versions');
    const [again] = await json(['deploy', 'src/hello.rs'], inProject());
    expect(again).to.include({ created: false, domain_created: false, version: 1 });
  });

  it('edge deploy shows the errors of the compiler, with the right file and line', async () => {
    await writeFile(join(project(), 'src/hello.rs'), `${handler('Hello')}\nfn wrong() -> u32 { "text" }\n`);
    const { code, stderr, stdout } = await edge(['deploy'], inProject());
    expect(code).to.equal(1);
    expect(stdout).to.equal('');
    expect(stderr)
      .to.include('error[E0308]: mismatched types')
      .and.match(/--> src\/hello\.rs:10:21/);
    expect(stderr)
      .to.include('compile_failed')
      .and.match(/request id: \S+/);
    const machine = await edge(['deploy', '--json'], inProject());
    expect(JSON.parse(machine.stderr)).to.include({ code: 'compile_failed', status: 422 });
    expect(machine.stdout).to.equal('');
    await writeFile(join(project(), 'src/hello.rs'), handler('Hello'));
  });

  it('edge deploy gives a version a share, which edge versions lists, and promote and rollback change', async () => {
    await writeFile(join(project(), 'src/hello.rs'), handler('Good day'));
    await run(['deploy', '--percent', '10', '-m', 'politer'], inProject());
    const listed = await run(['versions', 'shop.test/hello'], { env });
    expect(listed)
      .to.match(/^2 +10 % .*politer/m)
      .and.match(/^1 +90 %/m);
    expect(await json(['promote'], inProject())).to.have.property('targets');
    expect(await run(['rollback', 'GET shop.test/hello/{name}'])).to.include('Version 1 serves');
    const { code, stderr } = await edge(['promote', 'shop.test/hello'], { env });
    expect(code).to.equal(2);
    expect(stderr).to.include('No two versions');
    expect(await run(['rollback', 'shop.test/hello', '--version', '2'])).to.include('Version 2 serves');
  });

  it('edge versions --diff shows what differs between two versions', async () => {
    const shown = await run(['versions', 'shop.test/hello', '--diff', '1..2'], { env });
    expect(shown)
      .to.include('--- handler.rs\tversion 1\n+++ handler.rs\tversion 2\n')
      .and.include('Good day');
    const { code, stderr } = await edge(['versions', 'shop.test/hello', '--diff', '1-2'], { env });
    expect(code).to.equal(2);
    expect(stderr).to.include('--diff takes two versions such as 3..5');
  });

  it('edge invoke sends a request to a version, and edge route shows which endpoint gets one', async () => {
    const invoked = await json(['invoke', 'GET', '/hello/Bob', '--version', '1'], inProject());
    expect(invoked).to.include({ status: 200, version: 1, body: '{"message":"Hello Bob"}' });
    const shown = await run(['invoke', 'get', 'http://shop.test/hello/Bob'], { env });
    expect(shown)
      .to.match(/^200 in [\d.]+ ms, version 2, request /)
      .and.include('Good day Bob');
    expect(await run(['route', 'GET', 'shop.test/hello/Bob']))
      .to.include('{name}')
      .and.include('Bob');
    const { code, stderr } = await edge(['invoke', 'GET', '/helo/Bob'], inProject());
    expect(code).to.equal(2);
    expect(stderr).to.include('No endpoint of the host shop.test');
    // Where the host is given, the folder is not needed.
    const damaged = join(folder.path, 'damaged');
    await mkdir(damaged);
    await writeFile(join(damaged, 'edge.yaml'), 'a: b: c');
    const elsewhere = { env, cwd: damaged };
    expect(await run(['invoke', 'GET', '/hello/Bob', '--host', 'shop.test'], elsewhere)).to.match(/^200 /);
  });

  it('edge logs shows the entries of a request, follows new ones, and ends quietly', async () => {
    const headers = { host: 'shop.test', 'x-request-id': 'from-the-test' };
    await stack.gateway.get('/hello/Eve', { headers });
    const entries = await eventually(async () => {
      const lines = (await run(['logs', '--request', 'from-the-test', '--json'])).trim().split('\n');
      const found = lines.map((line) => JSON.parse(line));
      expect(found.map(({ kind }) => kind)).to.have.members(['output', 'request']);
      return found;
    });
    expect(entries.every(({ request_id }) => request_id === 'from-the-test')).to.equal(true);
    expect(await run(['logs', 'shop.test/hello', '--status', '2xx', '--since', '1h'])).to.match(
      /GET \/hello\/Eve 200 .* from-the-test/,
    );
    const follower = startEdge(['logs', '-f', '-n', '1', '--domain', 'shop.test'], { env });
    await follower.says('from-the-test');
    await stack.gateway.get('/hello/Fay', { headers: { host: 'shop.test', 'x-request-id': 'followed' } });
    await follower.says('followed');
    const ended = await follower.end();
    expect(ended.code).to.equal(130);
    expect(ended.stderr)
      .to.include('Interrupted')
      .and.not.match(/at .*\.js/);
  });

  it('edge logs -f continues after web was restarted, without gap or repeat', () => followed('SIGTERM'));
  it('edge logs -f continues after web was killed, without gap or repeat', () => followed('SIGKILL'));

  /** Follows the log while the API is ended and started again. */
  const followed = async (signal: NodeJS.Signals) => {
    const [meanwhile, afterwards] = [`meanwhile-${signal}`, `afterwards-${signal}`];
    const follower = startEdge(['logs', '-f', '-n', '1', '--domain', 'shop.test', '--json'], { env });
    const ids = () =>
      follower
        .stdout()
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as { id: string }).id);
    const get = (path: string, id: string) =>
      stack.gateway.get(path, { headers: { host: 'shop.test', 'x-request-id': id } });
    await eventually(() => expect(ids()).not.to.deep.equal([]));
    await stack.processes.get('web')?.end(signal);
    await get('/hello/Gil', meanwhile);
    await stack.start('web');
    await follower.says(`"${meanwhile}"`);
    await get('/hello/Hal', afterwards);
    await follower.says(`"${afterwards}"`);
    expect(new Set(ids()).size).to.equal(ids().length);
    expect((await follower.end()).code).to.equal(130);
  };

  it('edge lists and shows endpoints and domains by their names, and deletes none without --yes', async () => {
    expect(await run(['endpoint', 'list', '--domain', 'shop.test'])).to.match(
      /^shop\.test\/hello +GET +\/hello\/\{name\} +running/m,
    );
    expect(await json(['endpoint', 'show', 'shop.test/hello'])).to.include({
      name: 'hello',
      status: 'running',
    });
    expect(await run(['domain', 'show', 'SHOP.test'])).to.match(/^host +shop\.test$/m);
    const mistyped = await edge(['endpoint', 'show', 'shop.test/helo'], { env });
    expect(mistyped.code).to.equal(1);
    expect(mistyped.stderr).to.include('Was it shop.test/hello');
    for (const args of [
      ['endpoint', 'list', '--domain', 'shp.test'],
      ['logs', '--domain', 'shp.test'],
    ]) {
      const nowhere = await edge(args, { env });
      expect(nowhere.code, args.join(' ')).to.equal(1);
      expect(nowhere.stderr).to.include('shp.test').and.include('(not_found)');
    }
    expect((await edge(['endpoint', 'list', '--domain', '*'], { env })).stderr).to.include('There are no');
    const unasked = await edge(['endpoint', 'delete', 'shop.test/hello'], { env });
    expect(unasked.code).to.equal(2);
    expect(unasked.stderr).to.include('--yes');
    expect(await json(['endpoint', 'list'])).to.have.length(1);
  });

  it('edge update has cargo change the lock of a project, and the gateway what has none', async () => {
    const named = ['update', '--endpoint', 'shop.test/hello'];
    expect(await json(named)).to.deep.equal([{ name: 'shop.test/hello', version: 2, crates: [] }]);
    const [updated] = await json(['update'], inProject());
    expect(updated).to.deep.include({ version: 2, crates: [] });
    const bin = join(folder.path, 'bin');
    const lock = join(project(), 'Cargo.lock');
    await mkdir(bin);
    await writeFile(join(bin, 'cargo'), '#!/bin/sh\necho "$PWD $*" >> "$CALLS"\n', { mode: 0o755 });
    await writeFile(lock, '');
    try {
      const calls = join(folder.path, 'calls');
      const PATH = `${bin}:${process.env['PATH']}`;
      const options = { cwd: project(), env: { ...env, PATH, CALLS: calls } };
      expect(await run(['update', 'uuid'], options)).to.include(`${lock} is updated`);
      expect(await readFile(calls, 'utf8')).to.equal(`${project()} update -p uuid\n`);
      const without = await edge(['update'], { ...options, env: { ...env, PATH: '/nowhere' } });
      expect(without.code).to.equal(1);
      expect(without.stderr).to.include('needs cargo').and.include('(no_cargo)');
    } finally {
      await rm(lock);
    }
  });

  it('edge sets and lists variables, and reads values of secrets from stdin without ever showing them', async () => {
    await run(['variable', 'set', 'GREETING=Good day', 'EMPTY=', '--domain', 'shop.test']);
    await run(['variable', 'set', 'OTHER=a=b', '--domain', 'shop.test']);
    expect(await json(['variable', 'list', '--domain', 'shop.test'])).to.deep.equal({
      ...{ GREETING: 'Good day', EMPTY: '', OTHER: 'a=b' },
    });
    expect(await run(['variable', 'rm', 'EMPTY', 'OTHER', '--yes', '--domain', 'shop.test'])).to.equal(
      'Deleted: EMPTY, OTHER\n',
    );
    expect(Object.keys(await json(['variable', 'list', '--domain', 'shop.test']))).to.deep.equal([
      'GREETING',
    ]);
    const names = Array.from({ length: 4 }, (_, at) => `AT_ONCE_${at}`);
    await Promise.all(names.map((name) => run(['variable', 'set', `${name}=1`, '--domain', 'shop.test'])));
    expect(await json(['variable', 'list', '--domain', 'shop.test'])).to.include.all.keys(...names);
    await run(['variable', 'rm', ...names, '--yes', '--domain', 'shop.test']);
    const set = await run(['secret', 'set', 'KEY', '--endpoint', 'shop.test/hello'], {
      env,
      stdin: 'hidden\n',
    });
    const listed = await run(['secret', 'list', '--endpoint', 'shop.test/hello']);
    expect(listed).to.match(/^KEY /m);
    expect(set + listed).not.to.include('hidden');
    await run(['secret', 'set', 'DB_PASSWORD'], { env, stdin: 'hidden' });
    await run(['secret', 'rm', 'DB_PASSWORD', '--yes']);
    expect(await json(['secret', 'list'])).to.deep.equal([]);
    expect((await edge(['secret', 'set', 'KEY'], { env })).code).to.equal(2);
  });

  it('edge service makes a service from a config on stdin, and tests, activates, binds and deletes it', async () => {
    const config = JSON.stringify({ path: 'cli.db', create_if_missing: true });
    await run(['service', 'create', 'visits', 'sqlite'], { env, stdin: config });
    expect(await json(['service', 'test', 'visits'])).to.include({ connected: true });
    await run(['service', 'activate', 'visits']);
    await run(['service', 'bind', 'visits', 'shop.test/hello', 'main-db']);
    expect(await run(['service', 'list'])).to.match(/^visits +sqlite +connected/m);
    const { stderr } = await edge(['service', 'delete', 'visits', '--yes'], { env });
    expect(stderr).to.include('Endpoints were bound to it').and.include('GET shop.test/hello/{name}');
  });

  it('edge import imports a bundle and an OpenAPI document', async () => {
    await mkdir(join(folder.path, 'import'), { recursive: true });
    const zip = join(folder.path, 'import/petstore.zip');
    await writeFile(zip, await bundleOf('petstore'));
    const { code, stdout, stderr } = await edge(
      ['import', 'bundle', zip, '--domain', '*', '--start', '--json'],
      { env },
    );
    expect(code, stderr).to.equal(0);
    const imported = JSON.parse(stdout);
    expect(imported.started).to.equal(imported.endpoints.length);
    const document = join('examples/petstore/openapi.yaml');
    const plan = await json(['import', 'openapi', document, '--domain', 'shop.test', '--dry-run']);
    expect(plan).to.include({ dry_run: true });
    await run(['import', 'openapi', document, '--domain', 'shop.test', '--create-collection']);
    const collections = await run(['collection', 'list', '--domain', 'shop.test']);
    expect(collections).to.include('shop.test/');
  });

  it('edge deploy says on Ctrl-C that the gateway finishes the deployment, and it does', async () => {
    await writeFile(join(project(), 'src/hello.rs'), handler('Interrupted'));
    const held = await holdBuilds(stack.databaseUrl);
    try {
      const deploying = startEdge(['deploy'], inProject());
      await eventually(async () => {
        const queued = await json(['status']);
        expect(queued.builds.queued + queued.builds.running).to.equal(1);
      });
      const { code, stdout, stderr } = await deploying.end('SIGINT');
      expect([code, stdout]).to.deep.equal([130, '']);
      expect(stderr).to.include('Interrupted. The deployment continues at the gateway; `edge versions ');
    } finally {
      await held.release();
    }
    await eventually(async () => {
      const { body } = await stack.gateway.get('/hello/Ada', { headers: { host: 'shop.test' } });
      expect(body).to.deep.equal({ message: 'Interrupted Ada' });
    });
  });

  it('edge deploy deploys endpoints up to the first that fails, and none when a handler is missing', async () => {
    const several = join(folder.path, 'several');
    await mkdir(several);
    const of = (name: string) => `{host: several.test, method: GET, route: /${name}, handler: ${name}.rs}`;
    await writeFile(join(several, 'edge.yaml'), `endpoints:\n  - ${of('one')}\n  - ${of('two')}\n`);
    await writeFile(join(several, 'one.rs'), handler('Hello'));
    const missing = await edge(['deploy'], { env, cwd: several });
    expect(missing.code).to.equal(1);
    expect(missing.stderr).to.include('two.rs cannot be read');
    expect((await edge(['domain', 'show', 'several.test'], { env })).stderr).to.include('(not_found)');
    await writeFile(join(several, 'two.rs'), 'fn main() { wrong }');
    await writeFile(
      join(several, 'edge.yaml'),
      'endpoints: [{host: several.test, method: GET, route: "/{one", handler: one.rs}]\n',
    );
    const wrong = await edge(['deploy'], { env, cwd: several });
    expect(wrong.stderr).to.include('edge.yaml: "GET several.test/{one" was not made: body.path');
    await writeFile(join(several, 'edge.yaml'), `endpoints:\n  - ${of('one')}\n  - ${of('two')}\n`);
    const { code, stdout, stderr } = await edge(['deploy', '--json'], { env, cwd: several });
    expect([code, stdout]).to.deep.equal([1, '']);
    const { code: why, details } = JSON.parse(stderr);
    expect(why).to.equal('compile_failed');
    expect(details.deployed.map(({ endpoint }: { endpoint: string }) => endpoint)).to.deep.equal([
      'GET several.test/one',
    ]);
  });

  it('edge makes tokens and users, and shows the status of the gateway', async () => {
    const made = await json(['token', 'create', 'ci', '--permission', 'endpoints:read', '--expires', '30d']);
    const limited = {
      XDG_CONFIG_HOME: join(folder.path, 'other'),
      EDGE_URL: stack.apiUrl,
      EDGE_TOKEN: made.token,
    };
    expect((await json(['whoami'], { env: limited })).permissions).to.deep.equal(['endpoints:read']);
    const refused = await edge(['domain', 'list'], { env: limited });
    expect(refused.stderr).to.include('forbidden').and.include('domains:read');
    expect(await run(['token', 'list']))
      .to.include('ci')
      .and.not.include(made.token);
    const maker = await json(['token', 'create', 'maker', '--permission', 'tokens:write']);
    const refusedToken = await edge(['token', 'create', 'more'], {
      env: { ...limited, EDGE_TOKEN: maker.token },
    });
    expect(refusedToken.code).to.equal(1);
    expect(refusedToken.stderr).to.include('not by other tokens').and.include('/ui/access/tokens');
    await run(['token', 'delete', made.id, '--yes']);
    const status = await json(['status']);
    const kinds = status.nodes.map(({ kind }: { kind: string }) => kind);
    expect(kinds).to.have.members(['web', 'worker', 'gateway', 'actor-host']);
    expect(status.queues).to.be.an('array').and.not.to.have.length(0);
    expect(await run(['status']))
      .to.include('handlers:')
      .and.include('worker');
    await run(['user', 'create', 'Ada@shop.test', '--role', 'admin'], {
      env,
      stdin: 'correct horse battery',
    });
    expect(await run(['user', 'list'])).to.match(/^ada@shop\.test .*admin/m);
  });
});
