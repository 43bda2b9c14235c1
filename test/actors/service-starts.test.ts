/** Starts of the processes of services of several owners. */
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { ServiceMetrics } from '../../src/actors/service-metrics.js';
import { IsolatedService } from '../../src/actors/service-process/isolated-service.js';
import type { Starter } from '../../src/actors/service-process/starter.js';
import { objectFolder, runDirectory, serviceFolder, tokenFolder } from '../../src/bootstrap/run-directory.js';
import type { ServiceConfig } from '../../src/model/service-configs.js';
import { createTestLog } from '../support/log.js';
import { freePort } from '../support/ports.js';
import { openStarter } from '../support/starter.js';
import { type TempDir, tempDir } from '../support/temp.js';

const GREEDY_SERVICES = 24;

describe('starts of services', () => {
  let folder: TempDir;
  let starter: Starter;
  before(async () => {
    folder = await tempDir('starts');
    starter = await openStarter(folder.path);
  });
  after(async () => {
    await starter?.close();
    await folder?.remove();
  });

  it('a service is started before most of those that somebody else has started before', async () => {
    const runDir = await runDirectory(folder.path);
    const settings = {
      ...{ queueLimit: 1, defaultCallMs: 1_000, longestCallMs: 1_000, handlerThreads: 1 },
      ...{ answerBytes: 1024 ** 2, memoryMb: 64, logsDebug: false, sqliteFolders: [folder.path] as const },
      ...{ handlerFolder: await serviceFolder(runDir), objectFolder: await objectFolder(runDir) },
      ...{ tokenFolder: await tokenFolder(runDir), starter },
    };
    const config = {
      ...{ host: '127.0.0.1', port: await freePort(), database: 0, use_tls: false, pool_size: 1 },
    } as unknown as ServiceConfig;
    const metrics = new ServiceMetrics(new Registry(), () => []);
    const started: string[] = [];
    const start = (owner: string, id: string) => {
      const service = new IsolatedService({
        ...{ service: { id, type: 'redis' as const }, config, bindings: [], owner, settings },
        ...{ hadFile: async () => false, metrics: metrics.of(id, 'redis'), log: createTestLog().log },
        onState: () => undefined,
      });
      void service.ready().then(() => started.push(owner));
      return service;
    };
    const services = Array.from({ length: GREEDY_SERVICES }, (_, number) =>
      start('greedy', `greedy ${number}`),
    );
    const modest = start('modest', 'modest');
    await modest.ready();
    expect(started.length).to.be.below(GREEDY_SERVICES / 2);
    await Promise.all([...services, modest].map((service) => service.drain(0)));
  });
});
