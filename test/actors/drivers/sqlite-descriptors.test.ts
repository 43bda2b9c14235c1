import { execFileSync } from 'node:child_process';
import { closeSync, openSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { AbortSource } from '../../../src/actors/driver-call.js';
import { SqliteChannel } from '../../../src/actors/drivers/sqlite/channel.js';
import { ServiceError } from '../../../src/actors/service-error.js';
import { type TempDir, tempDir } from '../../support/temp.js';

describe('the process of a SQLite database', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('sqlite-descriptors');
  });
  after(() => folder.remove());

  it('reports that it is unavailable when it cannot be started without file descriptors', async () => {
    const lost: ServiceError[] = [];
    const file = { path: join(folder.path, 'a.db'), createIfMissing: true, maxSizeMb: 1, sizeMb: 0 };
    const channel = withoutDescriptors(() => new SqliteChannel(file, (error) => lost.push(error)));
    const failure = await channel.open(new AbortSource()).catch((thrown) => thrown);
    expect(failure).to.be.instanceOf(ServiceError);
    expect(failure).to.include({ kind: 'unavailable' });
    expect(String(failure)).to.include('EMFILE');
    expect(lost).to.have.length(1);
    await channel.close();
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
