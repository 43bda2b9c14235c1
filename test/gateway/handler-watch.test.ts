/** Whose memory counts for a handler, without a sandbox: what has left its family as well. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { HandlerWatch } from '../../src/gateway/handler-watch.js';
import { type LimitedProcess, spawnLimited } from '../../src/limited-process.js';
import { UNCONFINED } from '../../src/sandbox/confinement.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { type TempDir, tempDir } from '../support/temp.js';

const LIMIT_MB = 20;
const PATIENCE_MS = 20_000;

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

  it('counts what has left its session and lost its parent', async () => {
    const started = join(folder.path, 'started');
    // A shell that keeps 50 MB in a variable, in a session of its own, child of the first process of the machine.
    const hoard = `text=$(head -c 50000000 /dev/zero | tr '\\0' x); echo $$ > '${started}'; while :; do sleep 1; done`;
    handler = spawnLimited({
      confinement: UNCONFINED,
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
      // Its looks do not keep this process alive.
      const timer = setTimeout(() => done('not ended'), PATIENCE_MS);
      const done = (why: string) => {
        clearTimeout(timer);
        unwatch();
        resolve(why);
      };
      const watched = { pid, mark: handler.mark, isConfined: false, limits, end: done };
      const unwatch = watch.add(watched);
    });
    expect(reason).to.match(/MiB of memory, and may use 20 \(memory_mb\)$/);
  });
});
