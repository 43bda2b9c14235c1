import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { ServiceProcess } from '../../src/actors/service-process/service-process.js';
import type { Starter } from '../../src/actors/service-process/starter.js';
import { channelSocket } from '../../src/actors/service-process/starter-program.js';
import { runDirectory } from '../../src/bootstrap/run-directory.js';
import { descendantsOf, limitFiles } from '../support/process-state.js';
import { openStarter } from '../support/starter.js';
import { type TempDir, tempDir } from '../support/temp.js';

/** More than the arguments of a program may have. */
const TOO_LONG = 'x'.repeat(4 * 1024 * 1024);

describe('a service process that cannot be started', () => {
  let folder: TempDir;
  let starter: Starter;
  before(async () => {
    folder = await tempDir('service-process');
    starter = await openStarter(folder.path);
  });
  after(async () => {
    await starter?.close();
    await folder?.remove();
  });

  it('a service process that cannot be started ends once, with the reason, and refuses requests', async () => {
    const ends: string[] = [];
    const toStart = {
      ...{ service: { id: TOO_LONG, type: 'redis' as const }, memoryMb: 64 },
      ...{ sqliteFolder: undefined, serves: true },
    };
    const started = new ServiceProcess(starter, toStart, {
      onMessage: () => undefined,
      onEnd: (reason) => ends.push(reason),
    });
    const asked = started.ask({ type: 'ping' }).then(String, String);
    await started.ended();
    started.kill('too late');
    expect(ends).to.have.length(1);
    expect(ends[0]).to.match(/Argument list too long/);
    const askedLater = started.ask({ type: 'ping' }).then(String, String);
    for (const refused of [await asked, await askedLater])
      expect(refused).to.include('the process of the service has ended').and.include(ends[0]);
  });

  it('reports the end of a service process when there are no file descriptors to start it', async () => {
    const pid =
      descendantsOf(process.pid).find(({ command }) => command.includes('/native/starter'))?.pid ?? 0;
    const ends: string[] = [];
    const start = () =>
      new ServiceProcess(
        starter,
        {
          ...{ service: { id: 'a', type: 'redis' as const }, memoryMb: 64 },
          ...{ sqliteFolder: undefined, serves: true },
        },
        { onMessage: () => undefined, onEnd: (reason) => ends.push(reason) },
      );
    limitFiles(pid, '6:');
    await start().ended();
    expect(ends).to.have.length(1);
    expect(ends[0]).to.match(/too many open files/i);
    limitFiles(pid, '1024:');
    const later = start();
    await later.started;
    later.kill('it can be started now');
    await later.ended();
    expect(ends[1]).to.equal('it can be started now');
  });

  it('a channel of a service process is that of the process alone', async () => {
    const toStart = {
      ...{ service: { id: 'a', type: 'redis' as const }, memoryMb: 64 },
      ...{ sqliteFolder: undefined, serves: true },
    };
    const started = new ServiceProcess(starter, toStart, {
      onMessage: () => undefined,
      onEnd: () => undefined,
    });
    await started.started;
    const received = await Promise.all(
      ['1', '2', '3', '', 'x'.repeat(43)].map(async (line) => {
        const socket = connect(await channelSocket(await runDirectory(folder.path)));
        socket.end(`${line}\n`);
        return text(socket);
      }),
    );
    expect(received.join('')).to.equal('');
    expect(await started.ask({ type: 'ping' })).to.deep.equal({});
    started.kill('the test is over');
    await started.ended();
  });

  it('kills a service process that is still being started', async () => {
    const ends: string[] = [];
    const toStart = {
      ...{ service: { id: 'a', type: 'redis' as const }, memoryMb: 64 },
      ...{ sqliteFolder: undefined, serves: true },
    };
    const started = new ServiceProcess(starter, toStart, {
      onMessage: () => undefined,
      onEnd: (reason) => ends.push(reason),
    });
    started.kill('it is not needed any more');
    await started.ended();
    expect(ends).to.deep.equal(['it is not needed any more']);
  });
});
