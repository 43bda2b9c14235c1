/** The process table with processes that are not dumpable, and without free file descriptors. */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

const TABLE = new URL('../../src/sandbox/process-table.js', import.meta.url).href;
const WATCH = new URL('../../src/gateway/handlers/handler-watch.js', import.meta.url).href;

/** Runs a module in a separate process, which prints JSON. */
function run(module: string, options: { openFiles?: number } = {}): unknown {
  const node = [process.execPath, '--input-type=module', '-e', module];
  const { openFiles } = options;
  const [file = '', ...args] =
    openFiles === undefined ? node : ['/bin/sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`, ...node];
  const { stdout, stderr } = spawnSync(file, args, {
    cwd: fileURLToPath(new URL('../..', import.meta.url)),
    encoding: 'utf8',
  });
  expect(stderr).to.equal('');
  return JSON.parse(stdout);
}

describe('the table of processes', () => {
  it('counts all memory of a process that is not dumpable', () => {
    // Only then: the checkout may be in a folder that only root may enter.
    const dropRoot = process.getuid?.() === 0 ? 'process.setgid(65534); process.setuid(65534);' : '';
    const used = run(
      `import { memoryOver, readProcesses } from '${TABLE}';
       ${dropRoot}
       const first = readProcesses().get(1);
       console.log(JSON.stringify([first.residentBytes, memoryOver(new Map([[1, first]]), 1)]));`,
    );
    const [resident, counted] = used as [number, number];
    expect(resident).to.be.greaterThan(0);
    expect(counted).to.equal(resident);
  });

  it('ends no handler while the process table cannot be read, logs that once, and tries again later', () => {
    const seen = run(
      `import { closeSync, openSync } from 'node:fs';
       import { HandlerWatch } from '${WATCH}';
       const said = [];
       let tellFirst, tellLater;
       const [first, later] = [new Promise((tell) => { tellFirst = tell; }), new Promise((tell) => { tellLater = tell; })];
       const watch = new HandlerWatch({ warn: ({ err }) => { said.push(err.code); tellFirst(); } });
       let end;
       const ended = new Promise((resolve) => { end = resolve; });
       const limits = { memory_mb: 1 };
       const confinement = { hasNamespaces: false };
       watch.add({ pid: process.pid, confinement, limits, end });
       const held = [];
       try { for (;;) held.push(openSync('/dev/null', 'r')); } catch {}
       const timer = setInterval(() => undefined, 1000);
       await first;
       // When another one fails to read it, the first has tried again.
       const stop = new HandlerWatch({ warn: tellLater }).add({ pid: 1, confinement, limits, end: () => undefined });
       await later;
       stop();
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
