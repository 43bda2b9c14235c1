/** The embedded server: first starts that are killed, and data that is moved, restored, or of somebody else. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readlink, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { useEmbeddedPostgres } from '../support/embedded-postgres.js';
import { eventually } from '../support/eventually.js';
import { isRunning } from '../support/process-state.js';

describe('the embedded PostgreSQL', () => {
  const server = useEmbeddedPostgres();

  it('leaves no PostgreSQL running when SIGINT ends its first start, and starts it the next time', async () => {
    const child = server.start();
    const processes = await server.initialising(child);
    // It shall not end because it happens to be done.
    process.kill(processes[0] ?? 0, 'SIGSTOP');
    await server.end(child, 'SIGINT');
    await eventually(() => expect(processes.filter(isRunning)).to.deep.equal([]));
    await server.expectWorking();
  });

  it('starts PostgreSQL after everything was killed at its first start', async () => {
    const child = server.start();
    const processes = await server.initialising(child);
    const closed = once(child, 'close');
    for (const pid of [child.pid ?? 0, ...processes]) process.kill(pid, 'SIGKILL');
    await closed;
    await server.expectWorking();
  });

  it('starts PostgreSQL after its process was killed at its first start and initdb kept running', async () => {
    const child = server.start();
    const [initdb = 0] = await server.initialising(child);
    process.kill(initdb, 'SIGSTOP');
    await server.end(child, 'SIGKILL');
    await server.expectWorking();
    expect(isRunning(initdb)).to.equal(false);
  });

  if (process.getuid?.() === 0) {
    it('moves the data of PostgreSQL when its folder is closed to others', async () => {
      await server.makePrivate();
      await chmod(dirname(server.dataDir), 0o755);
      await server.keep();
      expect((await stat(join(server.dataDir, 'postgres'))).uid).not.to.equal(0);
      await chmod(dirname(server.dataDir), 0o700);
      await server.expectKept();
      expect(await readlink(join(server.dataDir, 'postgres'))).to.match(/^\/var\/lib\/edge-gateway-root\//);
    });

    /** Moves the data, and leaves it as an interruption does. @returns where the data was moved to */
    const interrupted = async (state: 'copying' | 'before the link') => {
      await server.makePrivate();
      await server.keep();
      const own = join(server.dataDir, 'postgres');
      const moved = await readlink(own);
      await promisify(execFile)('cp', ['-a', moved, `${own}.before-move`]);
      await rename(own, `${own}.link`);
      if (state === 'copying') {
        await rename(`${own}.before-move`, own);
        await rm(join(moved, 'global'), { recursive: true });
      }
      return moved;
    };

    it('keeps the data of PostgreSQL when it is killed while it copies the data to another folder', async () => {
      const incomplete = await interrupted('copying');
      await server.expectKept();
      expect(existsSync(incomplete)).to.equal(false);
      expect(existsSync(join(server.dataDir, 'postgres.link'))).to.equal(false);
    });

    it('keeps the data of PostgreSQL when it is killed after it has copied the data to another folder', async () => {
      const moved = await interrupted('before the link');
      await server.expectKept();
      expect(await readlink(join(server.dataDir, 'postgres'))).to.equal(moved);
      expect(existsSync(join(server.dataDir, 'postgres.before-move'))).to.equal(false);
    });

    it('starts PostgreSQL after it was killed before it had made its data in another folder', async () => {
      await server.makePrivate();
      await server.query('SELECT 1');
      await rm(await readlink(join(server.dataDir, 'postgres')), { recursive: true });
      await server.keep();
      await server.expectKept();
    });

    it('finds data of PostgreSQL that an earlier version has put elsewhere', async () => {
      await server.keep();
      const digest = createHash('sha256').update(server.dataDir).digest('hex').slice(0, 12);
      const moved = join('/var/lib/edge-gateway', digest);
      await mkdir(moved, { recursive: true });
      await rename(join(server.dataDir, 'postgres'), join(moved, 'postgres'));
      await writeFile(
        join(server.dataDir, 'postgres.moved'),
        `The PostgreSQL data of this folder is in ${moved}: ...\n`,
      );
      await server.expectKept();
      await server.expectKept();
    });

    it('runs PostgreSQL with data that root has restored', async () => {
      await server.keep();
      await promisify(execFile)('chown', ['-R', '0:0', join(server.dataDir, 'postgres')]);
      await server.expectKept();
    });

    it('runs PostgreSQL as the same user with data restored with the ids of another machine', async () => {
      await server.keep();
      const folder = join(server.dataDir, 'postgres');
      const { uid } = await stat(folder);
      const outside = join(server.folder, 'outside');
      await writeFile(outside, '');
      await symlink(outside, join(folder, 'link'));
      await promisify(execFile)('chown', ['-hR', '54321:54321', folder]);
      await server.expectKept();
      for (const path of [folder, join(folder, 'PG_VERSION')]) expect((await stat(path)).uid).to.equal(uid);
      expect((await stat(outside)).uid).to.equal(0);
    });

    it('refuses data of another user to which the folder of PostgreSQL is a link', async () => {
      await server.keep();
      const others = join(server.folder, 'others');
      await rename(join(server.dataDir, 'postgres'), others);
      await promisify(execFile)('chown', ['-R', '54321:54321', others]);
      await symlink(others, join(server.dataDir, 'postgres'));
      const child = server.start();
      expect(await once(child, 'close')).to.include(1);
      expect(server.output).to.include(`chown -hR postgres: ${others}`);
      expect((await stat(others)).uid).to.equal(54321);
      await rm(join(server.dataDir, 'postgres'));
    });
  }
});
