/** `edge` used in a wrong way, and when things are not as they should be: what it says, and how it ends. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { EDGE, edge, startEdge } from '../support/edge.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { freePort } from '../support/ports.js';
import { type TempDir, tempDir } from '../support/temp.js';

const KEY = 'the key of the tests';
const STACK_TRACE = /\n\s+at .*\.js/;

describe('edge, used in a wrong way', function () {
  this.timeout(60_000);
  let folder: TempDir;
  let api: TestApi;
  let env: Record<string, string>;
  const servers: Server[] = [];

  before(async () => {
    folder = await tempDir('usage');
    api = await startApi({ config: { API_KEY: KEY, API_BODY_LIMIT_BYTES: 4096 } });
    env = { XDG_CONFIG_HOME: folder.path, EDGE_URL: api.url, EDGE_TOKEN: KEY };
  });
  after(async () => {
    for (const server of servers) await new Promise((resolve) => server.close(resolve));
    await api?.close();
    await folder?.remove();
  });

  const admin = { headers: { authorization: `Bearer ${KEY}` } };
  const nowhere = () => ({ env: { XDG_CONFIG_HOME: join(folder.path, 'nothing') } });
  /** A server that answers everything by this function. */
  const serve = async (answer: Parameters<typeof createServer>[1]): Promise<string> => {
    const server = createServer(answer).listen(0, '127.0.0.1');
    servers.push(server);
    await once(server, 'listening');
    const address = server.address();
    return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  };

  for (const [args, expected] of [
    [['endpont', 'list'], /unknown command 'endpont'\n {2}Did you mean endpoint\?/],
    [['endpont', '--help'], /unknown command 'endpont'\n {2}Did you mean endpoint\?/],
    [['help', 'endpont'], /unknown command 'endpont'/],
    [['endpoint', 'lst'], /unknown command 'lst'\n {2}Did you mean list\?/],
    [['endpoint', 'delet', '--help'], /Did you mean delete\?/],
    [['endpoint', 'list', '--serch', 'x'], /unknown option '--serch'\n {2}Did you mean --search\?/],
    [['endpoint', 'list', 'more'], /too many arguments[\s\S]*`edge endpoint list --help` says what it takes/],
    [['endpoint', 'show'], /missing required argument 'name'[\s\S]*`edge endpoint show --help`/],
    [['endpoint', 'zzzzzz'], /unknown command 'zzzzzz'\n {2}`edge endpoint --help` lists the commands/],
    [['--context', 'list', 'status', '--zzzzzz'], /unknown option[\s\S]*`edge status --help`/],
    [['logs', '--level', 'loud'], /Allowed choices are trace/],
    [['deploy', '--percent', '0'], /no number from 1 on/],
    [['init', 'made', '--host', 'no host'], /no host is no host/],
    [['init', '--template', 'helo'], /There is no template helo\n {2}There are: .*hello/],
    [['completion', 'tcsh'], /Allowed choices are bash, zsh, fish/],
    [['logs', '--since', 'yesterday'], /yesterday is no time/],
    [['variable', 'set', 'NAME', '--domain', 'x'], /NAME is not NAME=VALUE/],
    [['login', 'ftp://x'], /ftp:\/\/x is no URL/],
    [['login', 'http://user:secret@x'], /must not have a password/],
    [['invoke', 'BREW', '/'], /BREW is no method/],
    [['deploy'], /There is no edge.yaml/],
  ] as const) {
    it(`edge ${args.join(' ')} does nothing, and says what is wrong`, async () => {
      const { code, stdout, stderr } = await edge(args, { env, cwd: folder.path });
      expect(code, stderr).to.equal(2);
      expect(stdout).to.equal('');
      expect(stderr).to.match(expected).and.not.match(STACK_TRACE);
    });
  }

  it('edge --json writes an error as one JSON object to stderr, and nothing to stdout', async () => {
    for (const args of [
      ['endpoint', 'lst', '--json'],
      ['whoami', '--json'],
      ['--json', 'endpoint', 'list'],
      ['endpoint', '--json', 'list'],
    ]) {
      const { stdout, stderr } = await edge(args, nowhere());
      expect(stdout).to.equal('');
      expect(JSON.parse(stderr)).to.include.keys('error', 'code', 'hint');
    }
  });

  it('edge shows help for commands and groups of commands, with exit code 0', async () => {
    for (const args of [
      ['--help'],
      ['help'],
      ['endpoint', '--help'],
      ['help', 'logs'],
      ['logs', '-h'],
      ['endpoint', 'help'],
    ]) {
      const { code, stdout, stderr } = await edge(args, nowhere());
      expect([code, stderr], args.join(' ')).to.deep.equal([0, '']);
      expect(stdout).to.match(/^Usage: edge/);
    }
    for (const args of [
      ['endpoint', 'list', '--help'],
      ['help', 'endpoint', 'list'],
      ['endpoint', 'help', 'list'],
      ['--json', 'endpoint', 'help', 'list'],
    ]) {
      const { code, stdout } = await edge(args, nowhere());
      expect([code, stdout.split('\n')[0]], args.join(' ')).to.deep.equal([
        0,
        'Usage: edge endpoint list [options]',
      ]);
    }
  });

  it('edge accepts general options before and after a command, and the last one counts', async () => {
    const { stderr } = await edge(['endpoint', '--context', 'a', 'list', '--context', 'b'], nowhere());
    expect(stderr).to.match(/There is no context b\b/);
    const before = await edge(['--context', 'a', 'endpoint', '--context', 'b', 'list'], nowhere());
    expect(before.stderr).to.match(/There is no context b\b/);
  });

  it('edge says what to do without a gateway, without a token, and with a wrong token', async () => {
    const without = await edge(['endpoint', 'list'], nowhere());
    expect(without.code).to.equal(1);
    expect(without.stderr).to.include('No gateway is configured').and.include('edge login URL');
    for (const token of [undefined, 'wrong', 'wröng ✗']) {
      const { code, stderr } = await edge(['endpoint', 'list'], { env: { ...env, EDGE_TOKEN: token } });
      expect(code).to.equal(1);
      expect(stderr)
        .to.include('(unauthorized)')
        .and.include('edge login')
        .and.include(`${api.url}/ui/access/tokens`)
        .and.match(/request id: \S/);
      expect(stderr.includes('was revoked or has expired')).to.equal(token !== undefined);
    }
    expect((await edge(['whoami'], { env: { ...env, EDGE_TOKEN: 'wrong' } })).code).to.equal(1);
  });

  it('edge names the URL of a server that cannot be reached, and what to do', async () => {
    const url = `http://127.0.0.1:${await freePort()}`;
    const { code, stderr } = await edge(['status'], { env: { ...env, EDGE_URL: url } });
    expect(code).to.equal(1);
    expect(stderr).to.include(url).and.include('nothing listens there').and.include('npm run up');
    expect(stderr).not.to.match(STACK_TRACE);
    const unknown = await edge(['status', '--json'], {
      env: { ...env, EDGE_URL: 'http://no-such-host.invalid' },
    });
    expect(JSON.parse(unknown.stderr)).to.include({ code: 'unreachable' });
  });

  it('edge refuses a server that is not the API, and follows no redirect with its token', async () => {
    const page = await serve((_, response) => response.end('<html>hello</html>'));
    const other = await edge(['endpoint', 'list'], { env: { ...env, EDGE_URL: page } });
    expect(other.code).to.equal(1);
    expect(other.stderr).to.include('no Edge Gateway').and.not.match(STACK_TRACE);
    const seen: string[] = [];
    const target = await serve((request, response) => {
      seen.push(request.url ?? '');
      response.end('{"ok": true, "data": []}');
    });
    const moved = await serve((_, response) => response.writeHead(302, { location: `${target}/x` }).end());
    const { code, stderr } = await edge(['endpoint', 'list'], { env: { ...env, EDGE_URL: moved } });
    expect(code).to.equal(1);
    expect(stderr).to.include('redirects').and.include(target);
    expect(seen).to.deep.equal([]);
  });

  it('edge show of an unknown name says which command lists the names', async () => {
    for (const kind of ['endpoint', 'collection', 'domain', 'service'])
      expect((await edge([kind, 'show', 'nothing'], { env })).stderr).to.include(`edge ${kind} list`);
  });

  it('edge user create says how to sign in when the first user closes the API', async () => {
    const open = await startApi();
    try {
      const add = (email: string, more = {}) =>
        edge(['user', 'create', email, '--role', 'admin'], {
          env: { ...env, EDGE_URL: open.url, EDGE_TOKEN: '', ...more },
          stdin: 'correct horse battery',
        });
      const { code, stderr } = await add('ada@first.test');
      expect(code, stderr).to.equal(0);
      expect(stderr).to.include('is closed now').and.include(`${open.url}/ui/access/tokens`);
      expect((await add('bob@first.test')).code).to.equal(1);
    } finally {
      await open.close();
    }
  });

  it('edge lists what an ambiguous name can be', async () => {
    const domain = { name: 'd', host: 'twice.test' };
    expectData(await api.post('/api/domains', domain, admin), 201);
    const ids: string[] = [];
    for (const path of ['/one', '/two']) {
      const endpoint = { name: 'same', method: 'GET', path, domain: domain.host };
      ids.push(expectData<{ id: string }>(await api.post('/api/endpoints', endpoint, admin), 201).id);
    }
    const { code, stderr } = await edge(['endpoint', 'delete', 'twice.test/same', '--yes'], { env });
    expect(code).to.equal(1);
    expect(stderr).to.include('ambiguous_name').and.include('GET twice.test/two');
    for (const id of ids) expect(stderr).to.include(id);
    expect((await edge(['endpoint', 'delete', 'GET twice.test/one', '--yes'], { env })).code).to.equal(0);
    expect((await edge(['endpoint', 'show', ids[1] ?? ''], { env })).code).to.equal(0);
  });

  it('edge says that a secret is too large for a request', async () => {
    const args = ['secret', 'set', 'LARGE', '--domain', 'twice.test'];
    const { code, stderr } = await edge(args, { env, stdin: 'x'.repeat(10_000) });
    expect(code).to.equal(1);
    expect(stderr)
      .to.include('(body_too_large)')
      .and.match(/request id: \S/);
  });

  it('edge ends quietly when the reader of its output stops reading', async () => {
    const rows = Array.from({ length: 3_000 }, (_, at) => ({
      name: `${'n'.repeat(200)} ${at}`,
      host: `h${at}.test`,
    }));
    await api.store.knex.batchInsert('domains', rows);
    for (const command of ['domain list', 'domain list --json']) {
      const line = `"${process.execPath}" "${EDGE}" ${command} | head -1`;
      const { code, stdout, stderr } = await bash(`${line}; exit \${PIPESTATUS[0]}`, env);
      expect([code, stderr], command).to.deep.equal([0, '']);
      expect(stdout.split('\n')).to.have.length(2);
    }
    const all = await edge(['domain', 'list', '--json'], { env });
    expect(JSON.parse(all.stdout)).to.have.length(3_001);
  });

  it('edge shows control characters in values as text, and passes them on in JSON', async () => {
    const hostile = { TITLE: '\u001b]0;owned\u0007\u001b[31mred\r\nsecond\u202e' };
    const { id } = expectData<{ id: string }>(
      await api.get('/api/resolve?kind=domain&name=twice.test', admin),
    );
    expectData(await api.put(`/api/domains/${id}/variables`, hostile, admin));
    const args = ['variable', 'list', '--domain', 'twice.test'];
    const shown = (await edge(args, { env })).stdout;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it looks for
    expect(shown).not.to.match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(shown).to.include('\\u001b]0;owned');
    expect(JSON.parse((await edge([...args, '--json'], { env })).stdout)).to.deep.equal(hostile);
  });

  it('edge ends at once with exit code 130 on Ctrl-C', async () => {
    const silent = await serve(() => undefined);
    const waiting = startEdge(['endpoint', 'list'], { env: { ...env, EDGE_URL: silent } });
    await eventually(async () => {
      const [server] = servers.slice(-1);
      const count = await new Promise((resolve) => server?.getConnections((_, found) => resolve(found)));
      expect(count).to.be.greaterThan(0);
    });
    const { code, stdout, stderr } = await waiting.end('SIGINT');
    expect([code, stdout, stderr]).to.deep.equal([130, '', 'Interrupted.\n']);
  });

  it('edge says that the file of contexts is damaged, and where edge.yaml is wrong', async () => {
    const damaged = join(folder.path, 'damaged');
    await mkdir(join(damaged, 'edge'), { recursive: true });
    await writeFile(join(damaged, 'edge/config.json'), '{"contexts": [');
    const { code, stderr } = await edge(['whoami'], { env: { XDG_CONFIG_HOME: damaged } });
    expect(code).to.equal(1);
    expect(stderr).to.include('config.json').and.not.match(STACK_TRACE);
    for (const [text, expected] of [
      ['endpoints: [', /edge\.yaml: .*/],
      ['endpoints:\n  - host: x\n', /endpoints\[0\]\.method must be a text/],
      ['endpoints:\n  - {host: x, method: BREW, route: /, handler: a.rs}\n', /method must be one of GET/],
      [
        'endpoints:\n  - {host: x.test, method: GET, route: /, handlr: a.rs}\n',
        /endpoints\[0\]\.handlr is not accepted; possible are .*handler/,
      ],
      ['endpints: []\n', /edge\.yaml: endpints is not accepted; possible are .*endpoints/],
      ['endpoints:\n  - {host: x.test, method: GET, route: /, handler: a.rs}\n', /a\.rs cannot be read/],
      [
        'endpoints:\n  - {host: x.test, method: GET, route: /, handler: s/a.rs, root: s/}\n',
        /endpoints\[0\]\.root: must not have an empty name/,
      ],
      [
        'endpoints:\n  - {host: x.test, method: GET, route: /, handler: a.rs, root: s}\n',
        /the handler a\.rs is outside of its root s\b/,
      ],
    ] as const) {
      await writeFile(join(damaged, 'edge.yaml'), text);
      const wrong = await edge(['deploy'], { env, cwd: damaged });
      expect(wrong.code, text).to.equal(1);
      expect(wrong.stderr).to.match(expected).and.not.match(STACK_TRACE);
    }
  });

  describe('edge on a terminal', () => {
    /** Runs a command on a terminal, with this typed. */
    const onTerminal = (command: string, typed: string, more: Record<string, string> = {}) =>
      bash(
        `script -qec '"${process.execPath}" "${EDGE}" ${command}' /dev/null`,
        { ...env, TERM: 'xterm', ...more },
        typed,
      );

    it('edge prints colours on a terminal, unless they are switched off', async () => {
      const coloured = await onTerminal('endpoint list', '');
      expect(coloured.stdout).to.include('\u001b[2mNAME');
      for (const [command, more] of [
        ['endpoint list', { NO_COLOR: '1' }],
        ['endpoint list --no-color', {}],
        ['--no-color endpoint list', {}],
        ['endpoint list --json', {}],
      ] as const)
        expect((await onTerminal(command, '', more)).stdout, command).not.to.include('\u001b[2m');
    });

    it('edge asks on a terminal before it deletes, and reads a token without showing it', async () => {
      const kept = await onTerminal('endpoint delete twice.test/same', 'n\n');
      expect(kept.stdout)
        .to.include('Delete the endpoint twice.test/same? [y/N]')
        .and.include('Nothing was done');
      const login = await onTerminal(`login ${api.url} --name typed`, `${KEY}\r`, { EDGE_TOKEN: '' });
      expect(login.stdout).to.include('token: ').and.include('Signed in').and.not.include(KEY);
      const left = await onTerminal(`login ${api.url} --name left`, 'abc\u0003', { EDGE_TOKEN: '' });
      expect(left.code).to.equal(130);
      expect(left.stdout).to.include('Interrupted.');
      const gone = await onTerminal('endpoint delete twice.test/same', 'y\n');
      expect(gone.stdout).to.include('Deleted');
    });
  });
});

/** Runs a line of bash. */
async function bash(line: string, env: Record<string, string>, stdin = '') {
  const child = spawn('bash', ['-c', line], {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (text: string) => {
      printed[name] += text;
      // Typed when there is a prompt: what comes before it is lost.
      if (stdin !== '' && /(\[y\/N\] |token: )$/.test(text)) child.stdin.write(stdin);
    });
  if (stdin === '') child.stdin.end();
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...printed };
}
