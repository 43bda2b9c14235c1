/** Memory that counts for a handler without a sandbox: as root, also that of processes that have left its session. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { HandlerWatch } from '../../src/gateway/handlers/handler-watch.js';
import { Confinement } from '../../src/sandbox/confinement.js';
import { type LimitedProcess, spawnLimited } from '../../src/sandbox/limited-process.js';
import { RunUser } from '../../src/sandbox/run-user.js';
import { HAS_UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { type TempDir, tempDir } from '../support/temp.js';

const LIMIT_MB = 20;
const LIMIT_MS = 20_000;

describe('watching handlers without a sandbox', () => {
  let folder: TempDir;
  let handler: LimitedProcess;
  before(async () => {
    folder = await tempDir('handler-watch');
  });
  after(async () => {
    await handler?.kill();
    await folder.remove();
  });

  it('counts the memory of orphaned processes that have left the session of a handler', async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    const confinement = new Confinement('limits', new RunUser(undefined), undefined, []);
    await confinement.handOver(folder.path);
    const started = join(folder.path, 'started');
    // A shell with 50 MB in a variable, in its own session, as a child of the init process.
    const hoard = `text=$(head -c 50000000 /dev/zero | tr '\\0' x); echo $$ > '${started}'; while :; do sleep 1; done`;
    handler = spawnLimited({
      confinement,
      file: '/bin/sh',
      args: ['-c', `( setsid sh -c "$0" & ) ; exec sleep 1000`, hoard],
      cwd: folder.path,
      env: { PATH: process.env['PATH'] ?? '' },
      limits: { memoryMb: 1024, fileMb: 1, openFiles: 64 },
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    const pid = (await handler.pid) ?? 0;
    await eventually(async () => expect(await readFile(started, 'utf8')).to.match(/^\d+\n$/));
    const watch = new HandlerWatch(createTestLog().log);
    const reason = await new Promise<string>((resolve) => {
      const limits = { memory_mb: LIMIT_MB };
      // Its timer does not keep this process alive.
      const timer = setTimeout(() => done('not ended'), LIMIT_MS);
      const done = (why: string) => {
        clearTimeout(timer);
        unwatch();
        resolve(why);
      };
      const watched = { pid, confinement, limits, end: done };
      const unwatch = watch.add(watched);
    });
    expect(reason).to.match(/MiB of memory, and may use 20 \(memory_mb\)$/);
  });
});
