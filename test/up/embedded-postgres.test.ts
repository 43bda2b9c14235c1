/** The embedded server as a process, above all its first start, which makes the data folder. More in test/torture. */
import { once } from 'node:events';
import { appendFile, mkdir, readlink, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { useEmbeddedPostgres } from '../support/embedded-postgres.js';
import { eventually } from '../support/eventually.js';
import { descendantsOf, isRunning } from '../support/process-state.js';

describe('the embedded PostgreSQL', () => {
  const server = useEmbeddedPostgres();

  it('leaves nothing running when it is ended by SIGTERM at its first start, and starts the next time', async () => {
    const child = server.start();
    const processes = await server.initialising(child);
    // It shall not end because it happens to be done.
    process.kill(processes[0] ?? 0, 'SIGSTOP');
    await server.end(child, 'SIGTERM');
    await eventually(() => expect(processes.filter(isRunning)).to.deep.equal([]));
    await server.expectWorking();
  });

  it('reports why the PostgreSQL server does not start', async () => {
    await server.expectWorking();
    const folder = join(server.dataDir, 'postgres');
    await appendFile(join(folder, 'postgresql.conf'), 'no_such_setting = 1\n');
    const child = server.start();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(server.output).to.match(/PostgreSQL did not start.*no_such_setting/);
  });

  it('ends the PostgreSQL server when its process is killed', async () => {
    const child = server.start();
    await server.started(child);
    const processes = descendantsOf(child.pid ?? 0).map(({ pid }) => pid);
    expect(processes).not.to.deep.equal([]);
    await server.end(child, 'SIGKILL');
    await eventually(() => expect(processes.filter(isRunning)).to.deep.equal([]));
  });

  it('does not end the PostgreSQL server of another process', async () => {
    const child = server.start();
    await server.started(child);
    const second = server.start();
    const [code] = (await once(second, 'close')) as [number];
    expect(code).to.equal(1);
    expect(server.output).to.match(/Another Edge Gateway uses the database/);
    await server.end(child, 'SIGTERM');
  });

  it('runs PostgreSQL in a folder that no other user may enter, and finds its data again', async () => {
    await server.makePrivate();
    await server.keep();
    await server.expectKept();
    if (process.getuid?.() === 0)
      expect(await readlink(join(server.dataDir, 'postgres'))).to.match(/^\/var\/lib\/edge-gateway-root\//);
  });

  it('makes no new password for PostgreSQL when it cannot read the existing one', async () => {
    await mkdir(join(server.dataDir, 'postgres.password'));
    const child = server.start();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(server.output).to.include('EISDIR');
  });

  it('reports a dangling link to the data of PostgreSQL', async () => {
    await symlink(join(server.folder, 'gone', 'postgres'), join(server.dataDir, 'postgres'));
    const child = server.start();
    const [code] = (await once(child, 'close')) as [number];
    expect(code).to.equal(1);
    expect(server.output).to.match(/The database is not there: .* is a link to .*gone/);
  });
});
