/** What handlers that do not keep to the rules can do to the actor host: nothing to others. */
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import type { TestBackend } from '../../support/backend.js';
import { startRedisBackend } from '../../support/backends/redis.js';
import { eventually } from '../../support/eventually.js';
import { encodeFrame } from '../../support/frames.js';
import { descendantsOf } from '../../support/process-state.js';
import { type Stack, startStack } from '../../support/processes.js';
import type { ServiceClient } from '../../support/service-client.js';
import {
  activeService,
  bind,
  connectAs,
  createEndpoint,
  SECRET_KEY,
  tokenFor,
} from '../../support/test-services.js';

const MEMORY_MB = 64;
const VALUE_BYTES = 4 * 1024 * 1024;

describe('hostile handlers', function () {
  this.timeout(60_000);
  let stack: Stack;
  let redis: TestBackend<'redis'>;
  let endpointId: string;
  let honest: ServiceClient;
  const sockets: Socket[] = [];
  before(async () => {
    redis = await startRedisBackend();
    const env = { SECRET_KEY, SERVICE_MEMORY_MB: String(MEMORY_MB), REQUEST_TIMEOUT_MS: '8000' };
    stack = await startStack({ processes: ['web', 'actor-host'], env });
    endpointId = await createEndpoint(stack.api, '/hostile');
    await bind(stack.api, endpointId, await activeService(stack.api, 'redis', redis.config), 'cache');
    honest = await connectAs(stack, endpointId);
    await honest.send({ pool: 'cache', op: 'set', args: { key: 'large' } }, Buffer.alloc(VALUE_BYTES));
    await honest.send({ pool: 'cache', op: 'set', args: { key: 'small' } }, 'value');
  });
  afterEach(() => {
    for (const socket of sockets.splice(0)) socket.destroy();
  });
  after(async () => {
    await honest.close();
    await stack.close();
    await redis.remove();
  });

  function rawConnection(): Socket {
    const socket = connect(stack.servicesSocket);
    socket.on('error', () => undefined);
    sockets.push(socket);
    return socket;
  }

  const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()));

  /** Of the actor host and the process of the service. */
  async function memoryMb(): Promise<number> {
    const host = stack.processes.get('actor-host')?.pid ?? 0;
    const pids = [host, ...descendantsOf(host).map(({ pid }) => pid)];
    const statuses = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8')));
    return statuses.reduce((sum, status) => sum + Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024, 0);
  }

  async function expectServed(): Promise<void> {
    const answer = await honest.send({ pool: 'cache', op: 'get', args: { key: 'small' } });
    expect(answer.ok, answer.message).to.equal(true);
    expect(String(answer.payload)).to.equal('value');
  }

  it('that send nothing, or too much, before their token are disconnected', async () => {
    const silent = rawConnection();
    const large = rawConnection();
    large.resume();
    const head = JSON.stringify({ token: 'x'.repeat(10_000) });
    large.write(encodeFrame('request', 1, head, Buffer.alloc(1024 * 1024)));
    await closed(large);
    silent.resume();
    await closed(silent);
    await expectServed();
  });

  it('that never read their answers do not fill the memory', async () => {
    const before = await memoryMb();
    const token = await tokenFor(stack.dataDir, endpointId);
    const head = JSON.stringify({ pool: 'cache', op: 'get', args: { key: 'large' } });
    for (let connection = 0; connection < 8; connection++) {
      const socket = rawConnection();
      socket.pause();
      socket.write(encodeFrame('request', 0, JSON.stringify({ token }), Buffer.alloc(0)));
      for (let number = 1; number <= 100; number++) {
        socket.write(encodeFrame('request', number, head, Buffer.alloc(0)));
      }
    }
    // 3 GiB were asked for.
    for (let look = 0; look < 20; look++) {
      await honest.send({ pool: 'cache', op: 'command' }, '["PING"]');
      expect(await memoryMb()).to.be.below(before + 500);
    }
    for (const socket of sockets.splice(0)) socket.destroy();
    await eventually(expectServed);
  });

  it('that send incomplete calls do not fill the memory, and are disconnected at a timeout', async () => {
    const before = await memoryMb();
    const token = await tokenFor(stack.dataDir, endpointId);
    const head = JSON.stringify({ pool: 'cache', op: 'set', args: { key: 'x' } });
    const call = encodeFrame('request', 1, head, Buffer.alloc(60 * 1024 * 1024, 'x'));
    const beginning = call.subarray(0, 20 * 1024 * 1024);
    const ends = Array.from({ length: 10 }, () => {
      const socket = rawConnection();
      socket.resume();
      socket.write(encodeFrame('request', 0, JSON.stringify({ token }), Buffer.alloc(0)));
      socket.write(beginning);
      return closed(socket);
    });
    // There is room for three of them.
    await Promise.race(ends);
    await expectServed();
    expect(await memoryMb()).to.be.below(before + 300);
    // The others do not send the rest in the time that a request may take.
    await Promise.all(ends);
    const answer = await honest.send(
      { pool: 'cache', op: 'set', args: { key: 'y' } },
      Buffer.alloc(20 * 1024 * 1024),
    );
    expect(answer.ok, answer.message).to.equal(true);
  });

  it('that violate the protocol at a high rate do not delay others', async () => {
    const unclosed = `["GET",1234567890123456,"${'\\"'.repeat(500_000)}`;
    const client = await connectAs(stack, endpointId);
    const refused = client.send({ pool: 'cache', op: 'command' }, unclosed);
    await expectServed();
    expect(await refused).to.include({ ok: false, kind: 'invalid' });
    for (const pool of ['__proto__', 'constructor', 'x'.repeat(100_000)]) {
      expect(await client.send({ pool, op: 'get' })).to.include({ kind: 'unbound' });
      expect(await client.send({ pool: 'cache', op: pool })).to.include({ kind: 'invalid' });
    }
    await client.close();
  });
});
