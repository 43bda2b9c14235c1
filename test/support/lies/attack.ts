/** Services on servers that lie, of an actor host whose other services must not notice. */
import { readdir, readFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import pLimit from 'p-limit';
import { eventually } from '../eventually.js';
import { descendantsOf, isRunning } from '../process-state.js';
import { startStack } from '../processes.js';
import { bind, createService, SECRET_KEY } from '../test-services.js';
import { callLiar, startCanary } from './canary.js';
import { type Lie, startLyingServer } from './lie.js';

/** Services on lying servers at the same time. */
const AT_ONCE = 40;
/** More than a service needs, and less than lies ask for. */
const MEMORY_MB = 128;
const WARM_UP_MS = 3_000;
/** Memory that comes and goes without a reason. */
const LEEWAY_MB = 48;
const CALLS = 3;
/** Between two rounds of calls of other services, which are to notice, and not to keep a core busy. */
const PAUSE_MS = 5;

/** Lies that are being told. */
export interface Attack {
  /** What became of one: its calls and tests have failed with a reason, and it could be ended. */
  outcome(lie: Lie): Promise<void>;
  /** When all have ended: other services have answered all calls, and nothing is left. */
  wasUnnoticed(): Promise<void>;
  close(): Promise<void>;
}

export async function startAttack(lies: readonly Lie[]): Promise<Attack> {
  const env = { SECRET_KEY, SERVICE_MEMORY_MB: String(MEMORY_MB) };
  const stack = await startStack({ processes: ['web', 'actor-host'], env });
  const canary = await startCanary(stack);
  const { endpointId } = canary;
  const hostPid = () => stack.processes.get('actor-host')?.pid ?? 0;

  /** Of the actor host, MiB. */
  async function memoryMb(): Promise<number> {
    const text = await readFile(`/proc/${hostPid()}/smaps_rollup`, 'utf8');
    return Number(/^Pss: +(\d+)/m.exec(text)?.[1]) / 1024;
  }

  /** Calls other services again and again until `isOver`. @returns the errors it got, and the number of calls */
  async function watchCanary(isOver: () => boolean): Promise<{ failures: string[]; calls: number }> {
    const failures: string[] = [];
    let calls = 0;
    while (!isOver()) {
      for (const call of canary.calls) {
        const failure = await call();
        calls++;
        if (failure !== undefined) failures.push(failure);
      }
      await delay(PAUSE_MS);
    }
    return { failures, calls };
  }

  /** Tests, activates, calls and deactivates a service on a server that lies. */
  async function endure(lie: Lie): Promise<void> {
    const server = await startLyingServer(lie);
    const id = await createService(stack.api, lie.type, lie.config(server.port), lie.name);
    try {
      // A test of the connection says why, or that there is a connection, if the lie comes later.
      for (let count = 0; count < (lie.tests ?? 1); count++) {
        const { body } = await stack.api.post(`/api/services/${id}/test`);
        const { data } = body as { data: { connected: boolean; error?: string } };
        if (!data.connected) expectReason(data.error);
      }

      await stack.api.post(`/api/services/${id}/activate`);
      await bind(stack.api, endpointId, id, id);
      for (let count = 0; count < CALLS; count++) {
        const answer = await callLiar(stack, endpointId, id, lie);
        if (answer.ok && lie.mayPass) continue;
        expect(answer.ok, JSON.stringify(answer)).to.equal(false);
        expectReason(answer.message);
      }
      const ended = await stack.api.post(`/api/services/${id}/deactivate`);
      expect(ended.body).to.include({ success: true });
    } finally {
      await stack.api.delete(`/api/services/${id}`);
      await server.close();
    }
  }

  const pid = hostPid();
  // Processes that are called again and again need more than idle ones.
  const until = performance.now() + WARM_UP_MS;
  await watchCanary(() => performance.now() > until);
  const memoryBefore = await memoryMb();
  const processesBefore = descendantsOf(pid).map(({ pid: own }) => own);
  const socketsBefore = (await readdir(dirname(stack.servicesSocket))).length;
  let isOver = false;
  const watched = watchCanary(() => isOver);
  // It is the outcome of a test.
  watched.catch(() => undefined);
  const limit = pLimit(AT_ONCE);
  const outcomes = new Map<Lie, Promise<void>>();
  for (const lie of lies) {
    const outcome = limit(() => endure(lie));
    outcome.catch(() => undefined);
    outcomes.set(lie, outcome);
  }

  return {
    outcome: async (lie) => outcomes.get(lie),
    wasUnnoticed: async () => {
      await Promise.allSettled(outcomes.values());
      isOver = true;
      const { failures, calls } = await watched;
      expect(failures).to.deep.equal([]);
      // How many depends on the machine: some while each of them lied.
      expect(calls).to.be.above(lies.length);
      await eventually(async () => {
        expect(descendantsOf(pid).map(({ pid: own }) => own)).to.have.members(processesBefore);
        expect(await readdir(dirname(stack.servicesSocket))).to.have.length(socketsBefore);
      }, 40_000);
      expect({ pid: hostPid(), isRunning: isRunning(pid) }).to.deep.equal({ pid, isRunning: true });
      await eventually(async () => expect(await memoryMb()).to.be.below(memoryBefore + LEEWAY_MB), 10_000);
    },
    close: async () => {
      isOver = true;
      await canary.close();
      await stack.close();
    },
  };
}

function expectReason(text: string | undefined): void {
  expect(text).to.be.a('string').with.length.above(10);
  expect(text, text).not.to.match(/\[object|^ +at |Cannot read|is not a function|EINVAL/m);
}
