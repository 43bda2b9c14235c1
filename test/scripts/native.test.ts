/** A machine without Rust: it gets the native programs from another one of its kind. */
import { type ChildProcess, fork, spawnSync } from 'node:child_process';
import { cp, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createClient } from '../support/client.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { numbered } from '../support/handler-sources.js';
import { freePort } from '../support/ports.js';
import { createDatabase } from '../support/postgres.js';
import { frontOf } from '../support/process-state.js';
import { startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';
import { SECRET_KEY } from '../support/test-services.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
/** What git does not know, but for dist/. */
const LEFT_OUT = /^(?:\.git|node_modules|data|rust\/(?:sdk\/)?target)$/;

describe('a machine without cargo', () => {
  let copy: TempDir;
  let programs: string;
  let environment: Record<string, string>;
  before(async () => {
    copy = await tempDir('without-cargo');
    const isCopied = (file: string) => !LEFT_OUT.test(relative(ROOT, file));
    await cp(ROOT, join(copy.path, 'edge-gateway'), { recursive: true, filter: isCopied });
    await symlink(join(ROOT, 'node_modules'), at('node_modules'));
    programs = join(copy.path, 'bin');
    await mkdir(programs);
    await symlink(process.execPath, join(programs, 'node'));
    environment = { PATH: programs, HOME: copy.path, XDG_CACHE_HOME: join(copy.path, 'cache') };
  });
  after(() => copy.remove());

  const at = (path: string) => join(copy.path, 'edge-gateway', path);
  const build = () => {
    const { status, stdout, stderr } = spawnSync('node', ['scripts/build.mjs'], {
      cwd: at(''),
      env: environment,
      encoding: 'utf8',
    });
    return { status, output: stdout + stderr };
  };

  it('builds without cargo from the programs of a copied dist/, starts them, and serves a handler', async () => {
    const { mtimeMs } = await stat(at('dist/native/gateway-front'));
    const { status, output } = build();
    expect(status, output).to.equal(0);
    expect((await stat(at('dist/native/gateway-front'))).mtimeMs).to.equal(mtimeMs);

    // Another machine compiles, and keeps the executables.
    const other = await startStack({ processes: ['web', 'worker'], env: { SECRET_KEY } });
    const env = {
      ...environment,
      SECRET_KEY,
      DATABASE_URL: other.databaseUrl,
      ARTIFACTS_URL: join(other.dataDir, 'artifacts'),
      DATA_DIR: join(copy.path, 'data'),
      GATEWAY_PORT: String(await freePort()),
    };
    const gateway = fork(at('dist/src/processes/gateway.js'), {
      env,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    try {
      await ready(gateway);
      expect(frontOf(gateway.pid ?? 0)).to.be.a('number');
      await other.deploy({ path: '/served', code: numbered(1) });
      const served = await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}/served`);
      expect([served.status, await served.text()]).to.deep.equal([200, '1 ']);
    } finally {
      await ended(gateway);
      await other.close();
    }
  }).timeout(120_000);

  it('lets a service wait for its native program until it is built', async () => {
    const program = at('dist/native/sqlite-service');
    await rename(program, `${program}.later`);
    const [database, port] = [await createDatabase(), await freePort()];
    const env = {
      ...environment,
      DATABASE_URL: database.url,
      DATA_DIR: join(copy.path, 'data'),
      PORT: String(port),
    };
    const processes = ['web', 'actor-host'].map((name) =>
      fork(at(`dist/src/processes/${name}.js`), { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] }),
    );
    try {
      await Promise.all(processes.map(ready));
      const api = createClient(`http://127.0.0.1:${port}`);
      const service = { name: 'db', service_type: 'sqlite', config: { path: join(copy.path, 'a.db') } };
      const { id } = expectData<{ id: string }>(await api.post('/api/services', service), 201);
      const url = `/api/services/${id}`;
      const what = 'the program of sqlite services is not built yet';
      const activated = (await api.post(`${url}/activate`)).body;
      expect(JSON.stringify(activated)).to.include(what);
      const tested = expectData<{ connected: boolean; error: string }>(await api.post(`${url}/test`));
      expect(tested.connected).to.equal(false);
      expect(tested.error).to.include(what);
      await rename(`${program}.later`, program);
      await eventually(async () =>
        expect(expectData<{ state: string }>(await api.get(url)).state).to.equal('connected'),
      );
    } finally {
      await Promise.all(processes.map(ended));
      await database.drop();
    }
  });

  it('builds without cargo from the programs of a copied cache', async () => {
    const files = await readdir(at('dist/native'));
    const groups = files.flatMap((file) => /^(\w+)\.sources$/.exec(file)?.[1] ?? []);
    expect(groups).to.include.members(['front', 'services']);
    const keys = await Promise.all(groups.map((name) => readFile(at(`dist/native/${name}.sources`), 'utf8')));
    const { glibcVersionRuntime = 'musl' } = (
      process.report.getReport() as { header: Record<string, string> }
    ).header;
    for (const key of keys) {
      const cached = `cache/edge-gateway/native/${key}-${process.arch}-${glibcVersionRuntime}`;
      await cp(at('dist/native'), join(copy.path, cached), { recursive: true });
    }
    await rm(at('dist/native'), { recursive: true });
    const { status, output } = build();
    expect(status, output).to.equal(0);
    for (const [index, name] of groups.entries())
      expect(await readFile(at(`dist/native/${name}.sources`), 'utf8')).to.equal(keys[index]);
    await rm(join(copy.path, 'cache'), { recursive: true });
  });

  it('says that `rustc` is missing when the copied programs are those of other sources', async () => {
    await writeFile(at('dist/native/front.sources'), 'of another version');
    const { status, output } = build();
    expect(status, output).to.equal(1);
    expect(output).to.match(/no `rustc` on the PATH/);
  });
});

async function ready(process: ChildProcess): Promise<void> {
  let printed = '';
  for (const stream of [process.stdout, process.stderr])
    stream?.on('data', (data: Buffer) => {
      printed += data.toString();
    });
  await new Promise<void>((resolve, reject) => {
    process.once('message', () => resolve());
    process.once('exit', () => reject(new Error(printed)));
  });
}

async function ended(process: ChildProcess): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return;
  await new Promise((resolve) => process.once('close', resolve).kill());
}
