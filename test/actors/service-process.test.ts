import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { expect } from 'chai';
import { ServiceProcess } from '../../src/actors/service-process/service-process.js';

/** More than the arguments of a program may have. */
const TOO_LONG = 'x'.repeat(4 * 1024 * 1024);

const PROGRAMS = { node: { node: process.execPath, script: 'none.js' } };

describe('a service process that cannot be started', () => {
  it('a service process that cannot be started ends once, with the reason, and refuses requests', async () => {
    const ends: string[] = [];
    const started = new ServiceProcess({ id: TOO_LONG, type: 'redis' }, 64, undefined, PROGRAMS, {
      onMessage: () => undefined,
      onEnd: (reason) => ends.push(reason),
    });
    const asked = started.ask({ type: 'ping' }).then(String, String);
    await started.ended();
    started.kill('too late');
    expect(ends).to.have.length(1);
    expect(ends[0]).to.include('E2BIG');
    const askedLater = started.ask({ type: 'ping' }).then(String, String);
    for (const refused of [await asked, await askedLater])
      expect(refused).to.include('the process of the service has ended').and.include(ends[0]);
  });

  it('reports the end of a service process when there are no file descriptors to start it', async () => {
    const ends: string[] = [];
    const listener = { onMessage: () => undefined, onEnd: (reason: string) => ends.push(reason) };
    const started = withoutDescriptors(
      () => new ServiceProcess({ id: 'a', type: 'sqlite' }, 64, undefined, PROGRAMS, listener),
    );
    await started.ended();
    expect(ends).to.have.length(1);
    expect(ends[0]).to.include('EMFILE');
  });
});

/** Runs a function while this process cannot open files. */
function withoutDescriptors<R>(work: () => R): R {
  const [, soft = ''] =
    /NOFILE +(\d+)/.exec(
      execFileSync('prlimit', [
        ...['--pid', String(process.pid)],
        ...['--nofile', '--raw', '--noheadings', '--output', 'RESOURCE,SOFT'],
      ]).toString(),
    ) ?? [];
  const setSoft = (limit: number | string) =>
    execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${limit}:`]);
  const taken: number[] = [];
  // A low limit, so that all are taken soon.
  setSoft(Math.max(...readdirSync('/proc/self/fd').map(Number)) + 50);
  try {
    takeAll(taken);
    return work();
  } finally {
    for (const fd of taken) closeSync(fd);
    setSoft(soft);
  }
}

function takeAll(taken: number[]): void {
  try {
    for (;;) taken.push(openSync('/dev/null', 'r'));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EMFILE') throw thrown;
  }
}
