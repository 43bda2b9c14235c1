/** User ids of untrusted programs: no two programs have one, and what killed processes have left is ended by it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, copyFile, readdir, readlink, stat, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { Confinement } from '../../src/sandbox/confinement.js';
import { killAll } from '../../src/sandbox/kill.js';
import { spawnLimited } from '../../src/sandbox/limited-process.js';
import { killAbandoned, RunUser } from '../../src/sandbox/run-user.js';
import { HAS_UNTRUSTED_USERS, UNTRUSTED_GROUP } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('the users of untrusted programs', () => {
  let records: TempDir;
  const programs: ChildProcess[] = [];

  before(function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
  });
  beforeEach(async () => {
    records = await tempDir('users');
  });
  afterEach(async () => {
    for (const program of programs.splice(0)) program.kill('SIGKILL');
    await records.remove();
  });

  const claimed = () => {
    const user = new RunUser(records.path);
    user.claim();
    return user;
  };
  const runAs = async (uid: number) => {
    const program = spawn('/bin/sleep', ['1000'], { uid, gid: UNTRUSTED_GROUP, stdio: 'ignore' });
    programs.push(program);
    await once(program, 'spawn');
    return program;
  };
  const endedPid = async () => {
    const program = spawn('/bin/true');
    await once(program, 'exit');
    return program.pid;
  };

  it('keeps the user of an untrusted program claimed until it is released', async () => {
    const user = claimed();
    const same = new RunUser(records.path, user.id);
    expect(() => same.claim()).to.throw(`the user ${user.id} is in use`);
    same.release(); // it is not its own
    expect(() => same.claim()).to.throw('in use');
    user.release();
    same.claim();
    same.release();
    expect(await readdir(records.path)).to.deep.equal([]);
  });

  it('kills set-user-ID programs that the user of an untrusted program runs', async () => {
    const [user, owner] = [claimed(), claimed()];
    const file = join(records.path, 'sleep');
    await copyFile('/bin/sleep', file);
    await chown(file, owner.id, UNTRUSTED_GROUP);
    await chmod(file, 0o4755);
    const program = spawnLimited({
      confinement: new Confinement('limits', user, undefined, []),
      ...{ file, args: ['1000'], cwd: '/', env: {} },
      limits: { memoryMb: 1024, fileMb: 64, openFiles: 256 },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    const pid = await program.pid;
    await eventually(async () => expect(await readlink(`/proc/${pid}/exe`)).to.equal(file));
    expect((await stat(`/proc/${pid}`)).uid, 'its effective user').to.equal(user.id);
    await user.end();
    expect(await program.ended).to.deep.equal({ code: null, signal: 'SIGKILL' });
    owner.release();
  });

  it('kills the untrusted programs that a killed process has left, and no others', async () => {
    const own = claimed();
    const kept = await runAs(own.id);
    // Ids of processes repeat. Earlier versions recorded the id alone.
    for (const owner of [await endedPid(), process.pid, `${process.pid}-1`, `${process.ppid}-1`]) {
      const abandoned = claimed();
      abandoned.release();
      await symlink(String(owner), join(records.path, `user-${abandoned.id}`));
      const exit = once(await runAs(abandoned.id), 'exit');
      await killAbandoned(records.path);
      expect(await exit).to.deep.equal([null, 'SIGKILL']);
    }
    expect(kept.exitCode ?? kept.signalCode).to.equal(null);
    expect(await readdir(records.path)).to.deep.equal([`user-${own.id}`]);
  });
});

describe('killing processes', () => {
  it('gives up on killed processes that do not end, with a warning', async () => {
    const warned = once(process, 'warning');
    // Of a process that has ended: killing it changes nothing.
    expect(await killAll(() => [2 ** 22 + 1], 0)).to.equal(false);
    const [warning] = (await warned) as [Error];
    expect(warning.message).to.equal(`processes were killed and have not ended: ${2 ** 22 + 1}`);
  });
});
