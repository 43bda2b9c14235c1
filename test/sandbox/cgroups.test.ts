/**
 * Control groups, in a folder that looks like a hierarchy of them: what is written where. That the kernel does as it is
 * told needs a machine on which controllers are delegated, which those of these tests need not be.
 */
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { Cgroups } from '../../src/sandbox/cgroups.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('control groups', () => {
  let folder: TempDir;
  let own: string;
  let group: string;
  beforeEach(async () => {
    folder = await tempDir('cgroups');
    own = join(folder.path, 'own');
    group = join(folder.path, 'system.slice', 'gateway.service');
    await writeFile(own, '1:name=systemd:/x\n0::/system.slice/gateway.service\n');
    await mkdir(group, { recursive: true });
    await writeFile(join(group, 'cgroup.controllers'), 'cpuset cpu io memory pids\n');
    await writeFile(join(group, 'cgroup.procs'), `${process.pid}\n`);
    await writeFile(join(group, 'cgroup.subtree_control'), '');
  });
  afterEach(() => folder.remove());

  const open = () => Cgroups.open(folder.path, own);
  const opened = () => {
    const groups = open();
    return groups instanceof Cgroups ? groups : expect.fail(groups.problem);
  };
  const text = (...names: string[]) => readFile(join(...names), 'utf8');

  it('moves this process to a leaf of its control group, and enables controllers for other groups', async () => {
    opened();
    expect(await text(group, 'service', 'cgroup.procs')).to.equal(String(process.pid));
    expect(await text(group, 'cgroup.subtree_control')).to.equal('+cpu +memory +pids');
  });

  it('limits memory, processes and CPU time of a program in a control group, and reads its usage', async () => {
    const made = opened().make({ memoryBytes: 128 * 1024 * 1024, processes: 65, cpuPercent: 150 });
    const values = ['memory.max', 'memory.oom.group', 'pids.max', 'cpu.max', 'cpu.weight'];
    expect(await Promise.all(values.map((name) => text(made.path, name)))).to.deep.equal([
      ...['134217728', '1', '65', '150000 100000', '10'],
    ]);
    await writeFile(join(made.path, 'cpu.stat'), 'usage_usec 2500000\nuser_usec 1\n');
    await writeFile(join(made.path, 'memory.current'), '4096\n');
    expect(made.usage()).to.deep.equal({ cpuSeconds: 2.5, bytes: 4096 });
    await writeFile(join(made.path, 'memory.events'), 'low 0\noom 1\noom_kill 0\n');
    expect(made.hasRunOutOfMemory()).to.equal(false);
    await writeFile(join(made.path, 'memory.events'), 'low 0\noom 1\noom_kill 3\n');
    expect(made.hasRunOutOfMemory()).to.equal(true);
  });

  it('removes a control group with its program, and remembers why that ended', async () => {
    const made = opened().make({ memoryBytes: 1, processes: undefined, cpuPercent: undefined });
    expect(await readdir(made.path)).not.to.include.members(['pids.max', 'cpu.max']);
    await writeFile(join(made.path, 'memory.events'), 'oom_kill 1\n');
    const { path } = made;
    // Those of the kernel have no files that would have to be removed.
    for (const name of await readdir(path)) if (name !== 'memory.events') await rm(join(path, name));
    expect(() => made.remove()).to.throw(/ENOTEMPTY/);
    await rm(join(path, 'memory.events'));
    made.remove();
    expect(await readdir(group)).not.to.include(path);
    expect(made.hasRunOutOfMemory()).to.equal(true);
    made.remove();
  });

  it('uses no control groups that are not delegated, and says why', async () => {
    await writeFile(join(group, 'cgroup.procs'), `${process.pid}\n1\n`);
    expect(open()).to.deep.equal({ problem: '/system.slice/gateway.service has other processes, too' });
    await writeFile(join(group, 'cgroup.controllers'), 'cpu\n');
    expect(open()).to.deep.equal({
      problem: '/system.slice/gateway.service has no controllers for memory, pids',
    });
    await rm(join(group, 'cgroup.controllers'));
    expect(open())
      .to.have.property('problem')
      .that.matches(/ENOENT/);
    await writeFile(own, '4:memory:/x\n');
    expect(open()).to.deep.equal({ problem: 'control groups of version 2 are not in use' });
  });
});
