/** What does the actor host cost, compared with connecting to the backend directly? */
import { SECRET_KEY } from '../test/support/test-services.js';
import { download } from './services/download.js';
import { idleServices, twoServices } from './services/many-services.js';
import { redisGet } from './services/redis-get.js';
import { rowByKey } from './services/row-by-key.js';
import { sqliteReads } from './services/sqlite-reads.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';

export const services: Benchmark = () =>
  withStacks([{ env: { SECRET_KEY } }], async (stack) => {
    if (!stack) throw new Error('there is no stack');
    return [
      await redisGet(stack),
      await rowByKey(stack),
      await sqliteReads(stack),
      await twoServices(stack),
      await idleServices(stack),
      await download(stack),
    ];
  });

await runAlone(import.meta.url, services);
