/** Services whose process ends, or does not answer: they recover, or say why not; others do not notice. */
import { readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { HAS_UNTRUSTED_USERS } from '../../../src/util/untrusted-users.js';
import type { TestBackend } from '../../support/backend.js';
import { startRedisBackend } from '../../support/backends/redis.js';
import { eventually } from '../../support/eventually.js';
import { LEAST_CONFIGS } from '../../support/examples.js';
import { descendantsOf, isRunning, rightsOf } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';
import { connectTo, type ServiceClient } from '../../support/service-client.js';
import {
  type Activity,
  activeService,
  bind,
  connectAs,
  createEndpoint,
  createService,
  SECRET_KEY,
  tokenFor,
} from '../../support/test-services.js';

const PING = { pool: 'cache', op: 'command' };
/** It is restarted after pauses of 0.1, 0.5, 2 and 5 s. */
const RESTARTED_MS = 60_000;

describe('the process of a service', function () {
  this.timeout(180_000);
  let stack: Stack;
  let redis: TestBackend<'redis'>;
  let endpointId: string;
  let serviceId: string;
  let otherId: string;
  let client: ServiceClient;
  before(async () => {
    redis = await startRedisBackend();
    stack = await startStack({
      processes: ['web', 'actor-host'],
      env: { SECRET_KEY, SERVICE_ANSWER_MB: '1', SECRET_CANARY: 'not for others' },
    });
    endpointId = await createEndpoint(stack.api, '/isolated');
  });
  beforeEach(async () => {
    serviceId = await activeService(stack.api, 'redis', redis.config);
    otherId = await activeService(stack.api, 'redis', redis.config);
    await bind(stack.api, endpointId, serviceId, 'cache');
    await bind(stack.api, endpointId, otherId, 'other');
    client = await connectAs(stack, endpointId);
  });
  afterEach(async () => {
    await client.close();
    for (const id of [serviceId, otherId]) await stack.api.delete(`/api/services/${id}`);
  });
  after(async () => {
    await stack?.close();
    await redis?.remove();
  });

  const hostPid = () => stack.processes.get('actor-host')?.pid ?? 0;
  const processesOf = (id: string) => descendantsOf(hostPid()).filter(({ command }) => command.includes(id));
  function processOf(id: string): number {
    const found = processesOf(id);
    expect(found).to.have.length(1);
    return found[0]?.pid ?? 0;
  }
  const pinged = (pool = 'cache') => client.send({ ...PING, pool, deadline_ms: 5_000 }, '["PING"]');
  const service = async () =>
    (await must(stack.api.get(`/api/services/${serviceId}`))) as {
      state: string;
      state_message: string | null;
    };
  const isServed = (pool?: string) =>
    eventually(async () => expect(await pinged(pool)).to.include({ ok: true }), RESTARTED_MS);

  /** Kills the process of the service as soon as there is a new one. */
  async function killed(times: number): Promise<void> {
    for (let count = 0; count < times; count++) {
      const found = await eventually(() => {
        const [first] = processesOf(serviceId);
        return first?.pid ?? expect.fail('there is no process');
      }, RESTARTED_MS);
      process.kill(found, 'SIGKILL');
      // A shell starts it, with children for a moment: one that outlives the shell would count as the next process.
      await eventually(() => expect(isRunning(found)).to.equal(false));
    }
  }

  it('runs a process for each active service, without secrets in its environment, until its deletion', async () => {
    expect(await service()).to.deep.include({ state: 'connected' });
    const pids = [processOf(serviceId), processOf(otherId)];
    expect(new Set(pids).size).to.equal(2);
    for (const pid of pids) {
      const environment = readFileSync(`/proc/${pid}/environ`, 'utf8');
      expect(environment).not.to.match(/DATABASE_URL|SECRET/);
      expect(readFileSync(`/proc/${pid}/cmdline`, 'utf8')).not.to.include(redis.config.password ?? 'none');
    }
    await must(stack.api.delete(`/api/services/${serviceId}`));
    await eventually(() => expect(pids.filter(isRunning)).to.deep.equal([pids[1]]));
  });

  it('runs the process of a service of any type without rights of root, as a user of its own', async () => {
    const ids = await Promise.all(
      Object.entries(LEAST_CONFIGS).map(async ([type, config]) => {
        const id = await createService(stack.api, type, config);
        await stack.api.post(`/api/services/${id}/activate`);
        return id;
      }),
    );
    const others: number[] = [];
    for (const id of ids) {
      // It has them while it reads its files.
      const { user } = await eventually(() => {
        const rights = rightsOf(processOf(id));
        expect(rights).to.include({ capabilities: 0n, noNewPrivs: true });
        return rights;
      });
      others.push(user);
    }
    if (HAS_UNTRUSTED_USERS) expect(new Set(others).size).to.equal(ids.length);
    await Promise.all(ids.map((id) => must(stack.api.delete(`/api/services/${id}`))));
    await eventually(() => expect(ids.flatMap(processesOf)).to.deep.equal([]));
  });

  it('replaces the process of a service when it ends, and answers calls of other services meanwhile', async () => {
    await isServed();
    const pid = processOf(serviceId);
    process.kill(pid, 'SIGKILL');
    expect(await pinged('other')).to.include({ ok: true });
    await isServed();
    expect(processOf(serviceId)).not.to.equal(pid);
    // Handlers reach the new process before the actor host has told the database of it.
    await eventually(async () => expect(await service()).to.include({ state: 'connected' }));
  });

  it('kills and replaces the process of a service when it does not answer', async () => {
    await isServed();
    const pid = processOf(serviceId);
    process.kill(pid, 'SIGSTOP');
    await eventually(() => expect(isRunning(pid)).to.equal(false), RESTARTED_MS);
    await isServed();
    expect(await pinged('other')).to.include({ ok: true });
  });

  it('gives up a service whose process has ended five times, until it is activated again', async () => {
    stack.processes.get('actor-host')?.logged.expectErrors(/the service has failed/);
    await killed(5);
    await eventually(async () => expect(await service()).to.include({ state: 'failed' }));
    expect((await service()).state_message).to.match(
      /has ended 5 times.*SIGKILL.*Activate the service again/,
    );
    const refused = await pinged();
    expect(refused).to.include({ ok: false, kind: 'unavailable' });
    expect(refused.message).to.match(/has ended 5 times/);
    expect(processesOf(serviceId)).to.deep.equal([]);
    expect(await pinged('other')).to.include({ ok: true });

    // A binding is no reason to try again.
    await bind(stack.api, await createEndpoint(stack.api, '/late'), serviceId, 'late');
    expect(await service()).to.include({ state: 'failed' });

    const { body } = await stack.api.post(`/api/services/${serviceId}/activate`);
    expect((body as Activity).data?.message).to.match(/^Connected to Redis/);
    expect(await pinged()).to.include({ ok: true });
  });

  it('starts a failed service again when its config is changed', async () => {
    stack.processes.get('actor-host')?.logged.expectErrors(/the service has failed/);
    await killed(5);
    await eventually(async () => expect(await service()).to.include({ state: 'failed' }));
    const pool_size = redis.config.pool_size + 1;
    await must(stack.api.put(`/api/services/${serviceId}`, { config: { ...redis.config, pool_size } }));
    expect(await service()).to.include({ state: 'connected' });
    expect(await pinged()).to.include({ ok: true });
  });

  it('fails no call of a service when its config changes and its process is replaced', async () => {
    let isOver = false;
    const failures: unknown[] = [];
    let calls = 0;
    const callers = Array.from({ length: 4 }, async () => {
      const own = await connectAs(stack, endpointId);
      while (!isOver) {
        const answer = await own.send({ ...PING }, '["PING"]');
        calls++;
        if (!answer.ok) failures.push(answer);
      }
      await own.close();
    });
    for (const pool_size of [1, 2, 3, 4]) {
      const before = calls;
      await must(stack.api.put(`/api/services/${serviceId}`, { config: { ...redis.config, pool_size } }));
      await eventually(() => expect(calls).to.be.above(before + 100));
    }
    isOver = true;
    await Promise.all(callers);
    expect(failures).to.deep.equal([]);
    await eventually(() => expect(processesOf(serviceId)).to.have.length(1));
  });

  it('fails only the call of a service whose value is too long', async () => {
    expect(
      await client.send({ pool: 'cache', op: 'set', args: { key: 'long' } }, Buffer.alloc(2 * 1024 ** 2)),
    ).to.include({
      ok: true,
    });
    const pid = processOf(serviceId);
    const answers = await Promise.all([
      pinged(),
      client.send({ pool: 'cache', op: 'get', args: { key: 'long' } }),
      pinged(),
    ]);
    expect(answers.map(({ ok }) => ok)).to.deep.equal([true, false, true]);
    expect(answers[1]).to.include({ kind: 'backend' });
    expect(answers[1]?.message).to.match(/2097152 bytes.*1 MiB \(SERVICE_ANSWER_MB\)/);
    expect(processOf(serviceId)).to.equal(pid);
  });

  it('refuses tokens of other service processes and of the actor host in the process of a service', async () => {
    const sockets = async () =>
      (await readdir(dirname(stack.servicesSocket))).filter(
        (name) => !['services.sock', 'host'].includes(name),
      );
    expect(await sockets()).to.have.length(2);
    // As the actor host answers, before the call is sent on.
    const token = await tokenFor(stack.dataDir, endpointId);
    const host = await connectTo(stack.servicesSocket, token);
    const addresses = await Promise.all(
      ['cache', 'other'].map(
        async (pool) => (await host.send({ ...PING, pool })).to ?? expect.fail('not moved'),
      ),
    );
    await host.close();
    const tried = async (socket: string, given: string) => {
      const own = await connectTo(join(dirname(stack.servicesSocket), socket));
      const answer = await own.send({ token: given });
      await own.close();
      return answer;
    };
    for (const { socket, token: its } of addresses) {
      expect(await tried(socket, its)).to.include({ ok: true });
      for (const other of [
        token,
        ...addresses.map((address) => address.token).filter((each) => each !== its),
      ])
        expect(await tried(socket, other)).to.include({ kind: 'unauthenticated' });
    }
  });

  it('applies bindings that are made and removed while the process of a service starts', async () => {
    const id = await createService(stack.api, 'redis', redis.config);
    const endpoints = await Promise.all(
      Array.from({ length: 6 }, (_, at) => createEndpoint(stack.api, `/early/${at}`)),
    );
    const [removed = '', ...kept] = endpoints;
    await bind(stack.api, removed, id, 'early');
    await Promise.all([
      stack.api.post(`/api/services/${id}/activate`),
      stack.api.delete(`/api/endpoints/${removed}/services/${id}`),
      ...kept.map((endpoint) => bind(stack.api, endpoint, id, 'early')),
    ]);
    for (const endpoint of endpoints) {
      const own = await connectAs(stack, endpoint);
      const expected = endpoint === removed ? { kind: 'unbound' } : { ok: true };
      expect(await own.send({ ...PING, pool: 'early' }, '["PING"]')).to.include(expected);
      await own.close();
    }
    await must(stack.api.delete(`/api/services/${id}`));
  });

  it('ends an actor host on SIGTERM although the processes of its services do not answer', async () => {
    await isServed();
    await isServed('other');
    const pids = [processOf(serviceId), processOf(otherId)];
    for (const pid of pids) process.kill(pid, 'SIGSTOP');
    const ended = await stack.processes.get('actor-host')?.end('SIGTERM');
    expect(ended).to.deep.include({ code: 0 });
    expect(pids.filter(isRunning)).to.deep.equal([]);
    await stack.start('actor-host');
    await client.close();
    client = await connectAs(stack, endpointId);
    await isServed();
  });

  it('ends the processes of services when their actor host is killed', async () => {
    const pids = [processOf(serviceId), processOf(otherId)];
    process.kill(processOf(otherId), 'SIGSTOP');
    await stack.processes.get('actor-host')?.end('SIGKILL');
    await eventually(() => expect(pids.filter(isRunning)).to.deep.equal([]));
    await stack.start('actor-host');
    await client.close();
    client = await connectAs(stack, endpointId);
    await isServed();
  });
});
