/** What is seen of processes, also of those that do not want to be seen, and without file descriptors. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const TABLE = new URL('../src/process-table.js', import.meta.url).href;
const WATCH = new URL('../src/gateway/handler-watch.js', import.meta.url).href;

/** Runs a module in a process of its own, which prints JSON. */
function run(module: string, options: { uid?: number; openFiles?: number } = {}): unknown {
  const node = [process.execPath, '--input-type=module', '-e', module];
  const { uid, openFiles } = options;
  const [file = '', ...args] =
    openFiles === undefined ? node : ['/bin/sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`, ...node];
  const { stdout, stderr } = spawnSync(file, args, {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
    ...(uid !== undefined && { uid, gid: uid }),
  });
  expect(stderr).to.equal('');
  return JSON.parse(stdout);
}

describe('the table of processes', () => {
  it('counts all memory of a process that does not let itself be looked at', () => {
    const nobody = process.getuid?.() === 0 ? { uid: 65_534 } : {};
    const used = run(
      `import { memoryOver, readProcesses } from '${TABLE}';
       const processes = readProcesses();
       console.log(JSON.stringify([processes.get(1).residentBytes, memoryOver([1], processes, 1)]));`,
      nobody,
    );
    const [resident, counted] = used as [number, number];
    expect(resident).to.be.greaterThan(0);
    expect(counted).to.equal(resident);
  });

  it('that cannot be read for want of file descriptors ends nobody: it is said once, and read again later', () => {
    const seen = run(
      `import { closeSync, openSync } from 'node:fs';
       import { HandlerWatch } from '${WATCH}';
       const said = [];
       const watch = new HandlerWatch({ warn: ({ err }) => said.push(err.code) });
       let end;
       const ended = new Promise((resolve) => { end = resolve; });
       const limits = { memory_mb: 1 };
       watch.add({ pid: process.pid, mark: 'a mark', socket: '/nowhere/at-all', limits, end });
       const held = [];
       try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {}
       const timer = setInterval(() => undefined, 1000);
       await new Promise((resolve) => setTimeout(resolve, 1600));
       for (const fd of held) closeSync(fd);
       const reason = await ended;
       clearInterval(timer);
       console.log(JSON.stringify({ said, reason }));
       process.exit();`,
      { openFiles: 64 },
    );
    expect(seen).to.have.property('said').that.deep.equals(['EMFILE']);
    expect(seen)
      .to.have.property('reason')
      .that.matches(/it used \d+ MiB of memory, and may use 1/);
  });
});
