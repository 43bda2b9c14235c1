import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { runTool, type ToolRun } from '../../src/build/run-tool.js';
import { Confinement, UNCONFINED } from '../../src/sandbox/confinement.js';
import { RunUser } from '../../src/sandbox/run-user.js';
import { HAS_UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { processesWith } from '../support/process-state.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('running a tool', () => {
  let folder: TempDir;
  let count = 0;
  let family: string;

  before(async () => {
    folder = await tempDir('tool');
    await confinement.handOver(folder.path);
  });
  after(() => folder.remove());
  beforeEach(() => {
    family = `TOOL_TEST=${process.pid}-${++count}`;
  });

  /** Without a sandbox: as root with a user of its own. */
  const user = HAS_UNTRUSTED_USERS ? new RunUser(undefined) : undefined;
  const confinement = new Confinement('limits', user, undefined, []);
  const sh = (script: string, options: Partial<ToolRun> & { timeoutMs?: number; idleMs?: number } = {}) => {
    const [name = '', value = ''] = family.split('=');
    const { timeoutMs = 100_000, idleMs, ...more } = options;
    return runTool({
      confinement,
      file: '/bin/sh',
      args: ['-c', script],
      cwd: folder.path,
      env: { PATH: process.env['PATH'] ?? '', [name]: value },
      limits: {
        timeoutMs,
        ...(idleMs !== undefined && { idleMs }),
        memoryMb: 1024,
        fileMb: 1,
        openFiles: 64,
        diskMb: 1024,
        totalMemoryMb: 8192,
      },
      writable: [],
      ...more,
    });
  };
  const running = () => processesWith(`${family}\0`);
  const exists = (name: string) =>
    access(join(folder.path, name)).then(
      () => true,
      () => false,
    );

  /**
   * A child, a double-forked one with children, and one that holds no stream of ours; as root in sessions of their own.
   */
  const setsid = HAS_UNTRUSTED_USERS ? 'setsid' : '';
  const DESCENDANTS = `
    ${setsid} sleep 1000 &
    ( ${setsid} sh -c 'sleep 1000 & sleep 1000 & wait' & ) &
    ${setsid} sleep 1000 > /dev/null 2>&1 < /dev/null &
  `;

  it('returns the output, exit code and signal of a tool', async () => {
    expect(await sh('echo out; echo err >&2; exit 3')).to.deep.equal({
      outcome: 'exited',
      exitCode: 3,
      signal: null,
      diskMayBeFull: true,
      stdout: 'out\n',
      stderr: 'err\n',
    });
    expect(await sh('kill -9 $$')).to.include({ outcome: 'exited', exitCode: null, signal: 'SIGKILL' });
  });

  it('ends a tool when all its processes wait in vain, but not while one of them works', async () => {
    expect(await sh('sleep 1000 & sleep 1000', { idleMs: 1_000 })).to.include({
      outcome: 'idle',
      exitCode: null,
    });
    expect(running()).to.deep.equal([]);
    // Three seconds of processor time; the shell itself waits.
    const busy = "sh -c 'ulimit -t 3; while :; do :; done'; echo done";
    expect(await sh(busy, { idleMs: 1_000 })).to.include({ outcome: 'exited', stdout: 'done\n' });
  });

  it('passes a tool the given environment, and nothing of the process that runs it', async () => {
    const { stdout } = await sh('env');
    const names = stdout
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    expect(names).to.include.members(['PATH', 'TOOL_TEST']);
    expect(names.filter((name) => !/^(PATH|TOOL_TEST|PWD|OLDPWD|SHLVL|_)$/.test(name ?? ''))).to.deep.equal(
      [],
    );
  });

  it('kills a tool and its descendants at the time limit', async () => {
    const result = await sh(`${DESCENDANTS} sleep 1000`, { timeoutMs: 500 });
    expect(result.outcome).to.equal('timed-out');
    expect(running()).to.deep.equal([]);
  });

  it('kills a tool and its descendants when it is aborted', async () => {
    const controller = new AbortController();
    const result = sh(`${DESCENDANTS} touch ready-1; sleep 1000`, { signal: controller.signal });
    // The descendants may need longer to start than the file.
    await eventually(async () => {
      expect(await exists('ready-1')).to.equal(true);
      expect(running().length).to.be.greaterThan(3);
    });
    controller.abort();
    expect((await result).outcome).to.equal('aborted');
    expect(running()).to.deep.equal([]);
  });

  it('a tool that is aborted before it starts ends as aborted', async () => {
    const result = await sh('touch never; sleep 1000', { signal: AbortSignal.abort() });
    expect(result.outcome).to.equal('aborted');
  });

  it('does not wait for the processes that a tool leaves, and ends them', async () => {
    const result = await sh(`${DESCENDANTS} echo done`);
    expect(result).to.deep.include({ outcome: 'exited', exitCode: 0, stdout: 'done\n' });
    await eventually(() => expect(running()).to.deep.equal([]));
  });

  it('does not wait for a process of a tool that has left its session and holds its streams', async () => {
    const hidden = join(folder.path, 'hidden');
    const hide = `env -i setsid sh -c 'echo $$ > "$0"; exec sleep 1000' '${hidden}' &
      until [ -s '${hidden}' ]; do sleep 0.01; done; echo done`;
    try {
      const result = await sh(hide, { confinement: UNCONFINED });
      expect(result).to.deep.include({ outcome: 'exited', exitCode: 0, stdout: 'done\n' });
    } finally {
      process.kill(Number(await readFile(hidden, 'utf8')), 'SIGKILL');
    }
  });

  it('keeps at most 16 MiB of the output of a tool', async () => {
    const result = await sh('yes 0123456789 | head -c 40000000');
    expect(result.exitCode).to.equal(0);
    expect(result.stdout.length).to.equal(16 * 1024 * 1024);
  });

  it('limits memory, file size and open files of a tool', async () => {
    const { stdout } = await sh('ulimit -v; ulimit -f; ulimit -n; ulimit -c');
    expect(stdout.trim().split('\n')).to.deep.equal([String(1024 * 1024), String(2048), '64', '0']);
    expect((await sh('head -c 2000000 /dev/zero > large')).exitCode).not.to.equal(0);
  });

  it('exits with 125 when a tool cannot be started', async () => {
    const result = await sh('', { file: '/no/such/tool', args: [] });
    expect(result.exitCode).to.equal(125);
    expect(result.stderr).to.match(/\/no\/such\/tool: ENOENT/);
  });
});
