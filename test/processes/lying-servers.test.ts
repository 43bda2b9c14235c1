/** Backends that lie: only calls of their own service fail, which says something true, and nothing is left of it. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import pLimit from 'p-limit';
import type { TestBackend } from '../support/backend.js';
import { startRedisBackend } from '../support/backends/redis.js';
import { eventually } from '../support/eventually.js';
import { type Lie, startLyingServer } from '../support/lies/lie.js';
import { OTHER_LIES } from '../support/lies/others.js';
import { POSTGRES_LIES } from '../support/lies/postgres.js';
import { REDIS_LIES } from '../support/lies/redis.js';
import { descendantsOf, isRunning } from '../support/process-state.js';
import { type Stack, startStack } from '../support/processes.js';
import type { ServiceClient } from '../support/service-client.js';
import {
  activeService,
  bind,
  connectAs,
  createEndpoint,
  createService,
  SECRET_KEY,
} from '../support/test-services.js';

/** Services on lying servers at the same time. */
const AT_ONCE = 6;
const LIES = [...POSTGRES_LIES, ...REDIS_LIES, ...OTHER_LIES];
/** More than a service needs, and less than lies ask for. */
const MEMORY_MB = 128;
/** Of a service in the actor host, and of one with a process of its own. */
const CANARY_CALLS = [
  [{ pool: 'database', op: 'query' }, '{"sql":"SELECT 1","params":[]}'],
  [{ pool: 'cache', op: 'command' }, '["PING"]'],
] as const;
const WARM_UP_MS = 3_000;
/** Memory that comes and goes without a reason. */
const LEEWAY_MB = 48;

describe('backends that lie', function () {
  this.timeout(180_000);
  let stack: Stack;
  let canary: ServiceClient;
  let redis: TestBackend<'redis'>;
  let endpointId: string;
  before(async () => {
    const env = { SECRET_KEY, SERVICE_MEMORY_MB: String(MEMORY_MB) };
    stack = await startStack({ processes: ['web', 'actor-host'], env });
    endpointId = await createEndpoint(stack.api, '/canary');
    redis = await startRedisBackend();
    const path = join(stack.dataDir, 'canary.db');
    await bind(stack.api, endpointId, await activeService(stack.api, 'sqlite', { path }), 'database');
    await bind(stack.api, endpointId, await activeService(stack.api, 'redis', redis.config), 'cache');
    canary = await connectAs(stack, endpointId);
  });
  after(async () => {
    await canary?.close();
    await stack?.close();
    await redis?.remove();
  });

  const hostPid = () => stack.processes.get('actor-host')?.pid ?? 0;

  /** Of the actor host, MiB. */
  async function memoryMb(): Promise<number> {
    const text = await readFile(`/proc/${hostPid()}/smaps_rollup`, 'utf8');
    return Number(/^Pss: +(\d+)/m.exec(text)?.[1]) / 1024;
  }

  /** Calls other services all the time until `isOver`. @returns the errors it got, and the number of calls */
  async function watchCanary(isOver: () => boolean): Promise<{ failures: string[]; calls: number }> {
    const failures: string[] = [];
    let calls = 0;
    while (!isOver()) {
      for (const [call, payload] of CANARY_CALLS) {
        const { ok, message = '' } = await canary.send({ ...call, deadline_ms: 3_000 }, payload);
        calls++;
        if (!ok) failures.push(`${call.pool}: ${message}`);
      }
    }
    return { failures, calls };
  }

  /** Tests, activates, calls and deactivates a service on a server that lies. */
  async function endure(lie: Lie): Promise<void> {
    const server = await startLyingServer(lie);
    const id = await createService(stack.api, lie.type, lie.config(server.port), lie.name);
    try {
      // A test of the connection says why, or that there is a connection, if the lie comes later.
      const { body } = await stack.api.post(`/api/services/${id}/test`);
      const { data } = body as { data: { connected: boolean; error?: string } };
      if (!data.connected) expectReason(data.error);
      else expect(lie.call, JSON.stringify(data)).not.to.equal(undefined);

      await stack.api.post(`/api/services/${id}/activate`);
      await bind(stack.api, endpointId, id, id);
      if (lie.call) {
        const { operation: op, args, payload, timeoutMs: deadline_ms } = lie.call;
        for (let count = 0; count < 3; count++) {
          const client = await connectAs(stack, endpointId);
          const answer = await client.send({ pool: id, op, args, deadline_ms }, payload ?? '');
          await client.close();
          expect(answer.ok, JSON.stringify(answer)).to.equal(false);
          expectReason(answer.message);
        }
      }
      const ended = await stack.api.post(`/api/services/${id}/deactivate`);
      expect(ended.body).to.include({ success: true });
    } finally {
      await stack.api.delete(`/api/services/${id}`);
      await server.close();
    }
  }

  describe('fail their own calls with a reason:', () => {
    const outcomes = new Map<Lie, Promise<void>>();
    let pid: number;
    let memoryBefore: number;
    let processesBefore: number[];
    let socketsBefore: number;
    let isOver = false;
    let watched: ReturnType<typeof watchCanary>;
    before(async () => {
      pid = hostPid();
      // Processes that are called all the time need more than idle ones.
      const until = performance.now() + WARM_UP_MS;
      await watchCanary(() => performance.now() > until);
      memoryBefore = await memoryMb();
      processesBefore = descendantsOf(pid).map(({ pid: own }) => own);
      socketsBefore = (await readdir(dirname(stack.servicesSocket))).length;
      watched = watchCanary(() => isOver);
      const limit = pLimit(AT_ONCE);
      for (const lie of LIES) {
        const outcome = limit(() => endure(lie));
        // It is the outcome of a test below.
        outcome.catch(() => undefined);
        outcomes.set(lie, outcome);
      }
    });
    for (const lie of LIES) it(lie.name, () => outcomes.get(lie));

    it('and nobody else notices, nor is anything left of them', async () => {
      await Promise.allSettled(outcomes.values());
      isOver = true;
      const { failures, calls } = await watched;
      expect(failures).to.deep.equal([]);
      expect(calls).to.be.above(1_000);
      await eventually(async () => {
        expect(descendantsOf(pid).map(({ pid: own }) => own)).to.have.members(processesBefore);
        expect(await readdir(dirname(stack.servicesSocket))).to.have.length(socketsBefore);
      }, 40_000);
      expect({ pid: hostPid(), isRunning: isRunning(pid) }).to.deep.equal({ pid, isRunning: true });
      await eventually(async () => expect(await memoryMb()).to.be.below(memoryBefore + LEEWAY_MB), 10_000);
    });
  });
  function expectReason(text: string | undefined): void {
    expect(text).to.be.a('string').with.length.above(10);
    expect(text, text).not.to.match(/\[object|^ +at /m);
  }
});
