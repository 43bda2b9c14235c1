/** Connection tests of several owners at a time. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import { testInProcess } from '../../src/actors/service-process/isolated-test.js';
import type { Starter } from '../../src/actors/service-process/starter.js';
import type { ServiceConfig } from '../../src/model/service-configs.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { freePort } from '../support/ports.js';
import { openStarter } from '../support/starter.js';
import { type TempDir, tempDir } from '../support/temp.js';

const AT_A_TIME = 8;

describe('connection tests', () => {
  let folder: TempDir;
  let starter: Starter;
  let silent: Server;
  const held: Socket[] = [];
  before(async () => {
    folder = await tempDir('tests');
    starter = await openStarter(folder.path);
    // It takes connections, and never says anything.
    silent = createServer((socket) => {
      held.push(socket);
      socket.on('error', () => undefined);
    });
    silent.listen(0, '127.0.0.1');
    await once(silent, 'listening');
  });
  after(async () => {
    silent.close();
    for (const socket of held) socket.destroy();
    await starter?.close();
    await folder?.remove();
  });

  const test = (owner: string, port: number) => {
    const request = {
      service: { id: `of ${owner}`, type: 'redis' as const },
      config: {
        host: '127.0.0.1',
        port,
        database: 0,
        use_tls: false,
        pool_size: 1,
      } as unknown as ServiceConfig,
      ...{ answerBytes: 1024 ** 2, memoryMb: 128, sqliteFolders: ['/'] as const, logsDebug: false },
      timeoutMs: 20_000,
    };
    return testInProcess(owner, request, async () => false, starter, createTestLog().log);
  };

  it('a service is tested while somebody else tests as many that do not answer as may be tested at a time', async () => {
    const { port } = silent.address() as AddressInfo;
    const others = Array.from({ length: AT_A_TIME + 1 }, () => test('greedy', port));
    await eventually(() => expect(held).to.have.length(AT_A_TIME));
    const tested = await test('modest', await freePort());
    expect(tested).to.have.property('error').that.includes('was refused');
    expect(held).to.have.length(AT_A_TIME);
    silent.close();
    for (const socket of held) socket.destroy();
    for (const { connected } of await Promise.all(others)) expect(connected).to.equal(false);
  });
});
