/** Where files of sqlite services may be, and that a lost file is no new, empty one. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { askForPlan } from '../support/plans.js';
import { descendantsOf } from '../support/process-state.js';
import { type Stack, startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';

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
  const restart = async (env: Record<string, string>) => {
    for (const name of ['web', 'actor-host'] as const) await stack.processes.get(name)?.end('SIGTERM');
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

  it('makes no new file of a sqlite service whose process ends after its file was moved', async () => {
    const file = join(stack.dataDir, 'sqlite', 'moving.db');
    const id = await create('moving.db');
    expect((await activate(id)).state).to.equal('connected');
    for (const end of ['', '-wal', '-shm'])
      if (existsSync(`${file}${end}`)) await rename(`${file}${end}`, `${file}.moved${end}`);
    const host = stack.processes.get('actor-host')?.pid ?? 0;
    const processes = descendantsOf(host).filter(({ command }) => command.includes('sqlite-service'));
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
    for (const folder of [one, two]) await mkdir(folder);
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
