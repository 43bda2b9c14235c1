/** Where files of sqlite services may be, and that a lost file is no new, empty one. */
import { existsSync, lstatSync } from 'node:fs';
import {
  chmod,
  chown,
  link,
  mkdir,
  readdir,
  readlink,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { execa } from 'execa';
import { openDatabase } from '../../../src/store/database.js';
import { HAS_UNTRUSTED_USERS, SQLITE_USER } from '../../../src/util/untrusted-users.js';
import { eventually } from '../../support/eventually.js';
import { expectData, expectFailure } from '../../support/expect.js';
import { askForPlan } from '../../support/plans.js';
import { descendantsOf, rightsOf, servicesOf } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';

interface Shown {
  readonly id: string;
  readonly state: string;
  readonly state_message: string;
}

describe('files of sqlite services', function () {
  this.timeout(120_000);
  let stack: Stack;
  /** Folders that SQLITE_DIR names, or does not. */
  let elsewhere: TempDir;
  before(async () => {
    elsewhere = await tempDir('sqlite');
    stack = await startStack({ processes: ['web', 'actor-host'] });
  });
  after(async () => {
    await stack?.close();
    await elsewhere?.remove();
  });

  const post = (path: string, name = path) =>
    stack.api.post('/api/services', { name, service_type: 'sqlite', config: { path } });
  const create = async (path: string, name = path) => expectData<Shown>(await post(path, name), 201).id;
  const show = async (id: string) => expectData<Shown>(await stack.api.get(`/api/services/${id}`));
  const activate = async (id: string) => {
    expect((await stack.api.post(`/api/services/${id}/activate`)).status).to.equal(200);
    return eventually(async () => {
      const shown = await show(id);
      expect(shown.state).to.be.oneOf(['connected', 'failed', 'unreachable']);
      return shown;
    });
  };
  const deactivate = async (id: string) =>
    expect((await stack.api.post(`/api/services/${id}/deactivate`)).status).to.equal(200);
  /** With other settings of the operator. */
  const restart = async (
    env: Record<string, string>,
    meanwhile: () => Promise<void> = async () => undefined,
  ) => {
    for (const name of ['web', 'actor-host'] as const) await stack.processes.get(name)?.end('SIGTERM');
    await meanwhile();
    for (const name of ['web', 'actor-host'] as const) await stack.start(name, env);
  };

  it('makes the file of a sqlite service in the folder of DATA_DIR, and refuses all others', async () => {
    const folder = join(stack.dataDir, 'sqlite');
    expect((await activate(await create('visits.db'))).state).to.equal('connected');
    expect((await activate(await create(join(folder, 'absolute.db')))).state).to.equal('connected');
    expect(await readdir(folder)).to.include.members(['visits.db', 'absolute.db']);
    const problem = /^config\.path: must be a file in \S+\/sqlite, .*SQLITE_DIR/;
    const outside = ['/etc/cron.d/x', '../secret.key', 'a/../../x.db', folder, '.', `${folder}-2/x.db`];
    for (const path of [...outside, join(elsewhere.path, 'x.db')]) {
      expectFailure(await post(path), 'invalid_config', problem);
      const edge = { stack: 's', services: [{ name: 'n', service_type: 'sqlite', config: { path } }] };
      const planned = await askForPlan(stack.api, { 'edge.yaml': JSON.stringify(edge) });
      expectFailure(planned, 'invalid_folder', /SQLITE_DIR/);
    }
    const id = await create('stays.db');
    const moved = { config: { path: '/tmp/moved.db' } };
    expectFailure(await stack.api.put(`/api/services/${id}`, moved), 'invalid_config', problem);
  });

  describe('as root', () => {
    before(async function () {
      if (!HAS_UNTRUSTED_USERS) this.skip();
      await restart({});
    });

    const processOf = (id: string) => {
      const host = stack.processes.get('actor-host')?.pid ?? 0;
      const [found] = descendantsOf(host).filter(({ command }) => command.includes(id));
      return found?.pid ?? expect.fail('there is no process');
    };
    const isServed = (id: string) =>
      eventually(async () => expect((await show(id)).state).to.equal('connected'));
    const ownersOf = (...paths: readonly string[]) => paths.map((path) => lstatSync(path).uid);

    it('gives files of sqlite services to the user of their processes, and nothing that is elsewhere', async () => {
      const folder = join(stack.dataDir, 'sqlite');
      const file = join(folder, 'of-root.db');
      const id = await create('of-root.db');
      expect((await activate(id)).state).to.equal('connected');
      expect(rightsOf(processOf(id))).to.include({ user: SQLITE_USER, capabilities: 0n, noNewPrivs: true });
      expect(ownersOf(folder, file)).to.deep.equal([SQLITE_USER, SQLITE_USER]);
      const other = join(elsewhere.path, 'other');
      await writeFile(other, '');
      await symlink(other, join(folder, 'link'));
      await link(other, join(folder, 'second-name'));
      await mkdir(join(folder, 'below'));
      await execa('chown', ['-hR', '0:0', folder]);
      await restart({});
      await isServed(id);
      const owned = ownersOf(folder, file, join(folder, 'below'), other, join(folder, 'link'));
      expect(owned).to.deep.equal([SQLITE_USER, SQLITE_USER, SQLITE_USER, 0, 0]);
    });

    it('runs the process of a sqlite service as the owner of a folder that SQLITE_DIR names', async () => {
      const folder = join(elsewhere.path, 'of-somebody');
      await mkdir(folder);
      await chown(folder, 12_345, 12_346);
      await restart({ SQLITE_DIR: folder });
      const id = await create('theirs.db');
      expect((await activate(id)).state).to.equal('connected');
      expect(rightsOf(processOf(id))).to.include({ user: 12_345, capabilities: 0n });
      expect(ownersOf(join(folder, 'theirs.db'))).to.deep.equal([12_345]);
      await chown(folder, 0, 0);
      await deactivate(id);
      const refused = await activate(id);
      expect(refused.state).to.equal('failed');
      expect(refused.state_message).to.match(/belongs to root, .*`chown -R (\d+):\1 /);
      await must(stack.api.delete(`/api/services/${id}`));
      await restart({});
    });

    it('moves files of sqlite services where the user of their processes can enter', async () => {
      const id = await create('moves.db');
      expect((await activate(id)).state).to.equal('connected');
      const { mode } = await stat(stack.dataDir);
      const own = join(stack.dataDir, 'sqlite');
      let place: string | undefined;
      try {
        await restart({}, () => chmod(stack.dataDir, 0o700));
        await isServed(id);
        place = await readlink(own);
        expect(ownersOf(`${own}/.`, join(own, 'moves.db'))).to.deep.equal([SQLITE_USER, SQLITE_USER]);
        await restart({});
        await isServed(id);
      } finally {
        await chmod(stack.dataDir, mode);
        if (place !== undefined) {
          await rm(own);
          await rename(place, own);
        }
        await restart({});
        if (place !== undefined) await rm(dirname(place), { recursive: true });
      }
      await isServed(id);
    });
  });

  it('does not start a sqlite service whose file was lost with a new one, until it is back', async () => {
    const file = join(stack.dataDir, 'sqlite', 'lost.db');
    const id = await create('lost.db');
    expect((await activate(id)).state).to.equal('connected');
    await deactivate(id);
    await rename(file, `${file}.moved`);
    const failed = await activate(id);
    expect(failed.state).to.equal('failed');
    expect(failed.state_message)
      .to.include(file)
      .and.to.match(/no empty one takes its place.*SQLITE_DIR/);
    const tested = await stack.api.post(`/api/services/${id}/test`);
    expect(expectData(tested)).to.deep.include({ connected: false, error: failed.state_message });
    expect(existsSync(file)).to.equal(false);
    await rename(`${file}.moved`, file);
    await stack.api.post(`/api/services/${id}/activate`);
    await eventually(async () => expect((await show(id)).state).to.equal('connected'));
    // Another path is another file.
    expectData(await stack.api.put(`/api/services/${id}`, { config: { path: 'another.db' } }));
    await eventually(() => expect(existsSync(join(stack.dataDir, 'sqlite', 'another.db'))).to.equal(true));
  });

  it('makes no new file of a sqlite service whose path is changed and changed back after its file was lost', async () => {
    const folder = join(stack.dataDir, 'sqlite');
    const file = join(folder, 'back.db');
    const id = await create('back.db');
    expect((await activate(id)).state).to.equal('connected');
    const move = async (path: string) =>
      expectData(await stack.api.put(`/api/services/${id}`, { config: { path } }));
    const shows = (state: string) => eventually(async () => expect((await show(id)).state).to.equal(state));
    await move('between.db');
    await eventually(() => expect(existsSync(join(folder, 'between.db'))).to.equal(true));
    await shows('connected');
    await rename(file, `${file}.moved`);
    for (const path of ['back.db', './back.db', file]) {
      await move(path);
      await shows('failed');
    }
    expect(existsSync(file)).to.equal(false);
    await rename(`${file}.moved`, file);
    expect((await activate(id)).state).to.equal('connected');
  });

  it('makes no new file of a sqlite service on a machine that had another name', async () => {
    const file = join(stack.dataDir, 'sqlite', 'renamed.db');
    const id = await create('renamed.db');
    expect((await activate(id)).state).to.equal('connected');
    await deactivate(id);
    await rename(file, `${file}.moved`);
    const store = openDatabase(stack.databaseUrl, () => undefined);
    try {
      await store
        .knex('services')
        .where({ id })
        .update({ file_hosts: ['container-of-before'] });
    } finally {
      await store.close();
    }
    const failed = await activate(id);
    expect(failed.state).to.equal('failed');
    expect(failed.state_message).to.match(/no empty one takes its place/);
    expect(existsSync(file)).to.equal(false);
    await rename(`${file}.moved`, file);
    await stack.api.post(`/api/services/${id}/activate`);
    await eventually(async () => expect((await show(id)).state).to.equal('connected'));
  });

  it('makes no new file of a sqlite service whose process ends after its file was moved', async () => {
    const file = join(stack.dataDir, 'sqlite', 'moving.db');
    const id = await create('moving.db');
    expect((await activate(id)).state).to.equal('connected');
    for (const end of ['', '-wal', '-shm'])
      if (existsSync(`${file}${end}`)) await rename(`${file}${end}`, `${file}.moved${end}`);
    const host = stack.processes.get('actor-host')?.pid ?? 0;
    const processes = servicesOf(host).filter(({ command }) => command.includes('sqlite-service'));
    expect(processes).to.not.be.empty;
    for (const { pid } of processes) process.kill(pid, 'SIGKILL');
    await eventually(async () => {
      const shown = await show(id);
      expect(shown.state).to.equal('unreachable');
      expect(shown.state_message).to.match(/does not exist, and none is made/);
    });
    expect(existsSync(file)).to.equal(false);
    await rename(`${file}.moved`, file);
    await eventually(async () => expect((await show(id)).state).to.equal('connected'));
  });

  it('opens files in all folders that SQLITE_DIR names, and says where the others are', async () => {
    const [one, two] = [join(elsewhere.path, 'one'), join(elsewhere.path, 'two')];
    for (const folder of [one, two]) {
      await mkdir(folder);
      if (HAS_UNTRUSTED_USERS) await chown(folder, SQLITE_USER, SQLITE_USER);
    }
    await restart({ SQLITE_DIR: `${one}, ${two}` });
    const ids = [await create('relative.db'), await create(join(two, 'absolute.db'))];
    for (const id of ids) expect((await activate(id)).state).to.equal('connected');
    expect(existsSync(join(one, 'relative.db')) && existsSync(join(two, 'absolute.db'))).to.equal(true);
    // The operator has forgotten both.
    await restart({});
    const [relative, absolute] = await Promise.all(
      ids.map((id) =>
        eventually(async () => {
          const shown = await show(id);
          expect(shown.state).to.equal('failed');
          return shown.state_message;
        }),
      ),
    );
    expect(relative)
      .to.include(join(stack.dataDir, 'sqlite', 'relative.db'))
      .and.include('SQLITE_DIR');
    expect(absolute).to.include(join(two, 'absolute.db')).and.include('SQLITE_DIR');
    expect(existsSync(join(stack.dataDir, 'sqlite', 'relative.db'))).to.equal(false);
    await restart({ SQLITE_DIR: `${one},${two}` });
    for (const id of ids) await eventually(async () => expect((await show(id)).state).to.equal('connected'));
  });
});
