/** What handlers that break the rules can do to the process of a service, or the actor host: nothing to others. */

import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { BACKENDS, type RunningBackend } from '../../support/backends/all.js';
import { eventually } from '../../support/eventually.js';
import { encodeFrame } from '../../support/frames.js';
import { descendantsOf } from '../../support/process-state.js';
import { type Stack, startStack } from '../../support/processes.js';
import { connectTo, type ServiceClient } from '../../support/service-client.js';
import {
  activeService,
  bind,
  connectAs,
  createEndpoint,
  SECRET_KEY,
  tokenFor,
} from '../../support/test-services.js';

/** Half of it is for payloads and unread answers. */
const MEMORY_MB = 128;
const VALUE_BYTES = 4 * 1024 * 1024;
const POOL = 'backend';

/** What a handler sends. */
interface Sent {
  readonly op: string;
  readonly args?: unknown;
  readonly payload?: string;
}

interface Calls {
  /** Each answers with `VALUE_BYTES`, or little. */
  readonly large: Sent;
  readonly small: Sent;
  /** A call whose payload may have any size. */
  readonly takesBytes: (bytes: number) => Sent;
  readonly unclosed: Sent;
  /** Stores what `large` reads. */
  readonly prepare?: Sent;
  /** Libraries in Node hold answers before they are counted: then the process may end, and is started again. */
  readonly countsAnswers: boolean;
}

const quotes = '\\"'.repeat(500_000);
const sql = (text: string, ...params: string[]) => JSON.stringify({ sql: text, params });
/** A program in Node, and the one in Rust. */
const SERVICES: Readonly<Record<'redis' | 'postgres', Calls>> = {
  redis: {
    countsAnswers: false,
    prepare: { op: 'set', args: { key: 'large' }, payload: 'x'.repeat(VALUE_BYTES) },
    large: { op: 'get', args: { key: 'large' } },
    small: { op: 'command', payload: '["PING"]' },
    takesBytes: (bytes) => ({ op: 'set', args: { key: 'y' }, payload: 'x'.repeat(bytes) }),
    unclosed: { op: 'command', payload: `["GET",1234567890123456,"${quotes}` },
  },
  postgres: {
    countsAnswers: true,
    large: { op: 'query', payload: sql(`SELECT repeat('x', ${VALUE_BYTES})`) },
    small: { op: 'query', payload: sql('SELECT 1') },
    takesBytes: (bytes) => ({ op: 'query', payload: sql('SELECT length(?)', 'x'.repeat(bytes)) }),
    unclosed: { op: 'query', payload: `{"sql":"SELECT 1","params":["${quotes}` },
  },
};

for (const type of ['redis', 'postgres'] as const)
  describe(`hostile handlers of a ${type} service`, function () {
    this.timeout(60_000);
    const { prepare, large, small, takesBytes, unclosed, countsAnswers } = SERVICES[type];
    let stack: Stack;
    let backend: RunningBackend;
    let endpointId: string;
    let serviceId: string;
    let honest: ServiceClient;
    const sockets: Socket[] = [];
    before(async () => {
      backend = await BACKENDS[type]();
      const env = {
        SECRET_KEY,
        SQLITE_DIR: tmpdir(),
        SERVICE_MEMORY_MB: String(MEMORY_MB),
        REQUEST_TIMEOUT_MS: '8000',
      };
      stack = await startStack({ processes: ['web', 'actor-host'], env });
      endpointId = await createEndpoint(stack.api, '/hostile');
      serviceId = await activeService(stack.api, type, backend.config);
      await bind(stack.api, endpointId, serviceId, POOL);
      honest = await connectAs(stack, endpointId);
      if (prepare) await send(prepare);
    });
    afterEach(() => {
      for (const socket of sockets.splice(0)) socket.destroy();
    });
    after(async () => {
      await honest.close();
      await stack.close();
      await backend.remove();
    });

    const send = ({ payload = '', ...head }: Sent) => honest.send({ pool: POOL, ...head }, payload);
    const frame = (number: number, { payload = '', ...head }: Sent) =>
      encodeFrame('request', number, JSON.stringify({ pool: POOL, ...head }), Buffer.from(payload));
    const hostPid = () => stack.processes.get('actor-host')?.pid ?? 0;
    const processes = () =>
      descendantsOf(hostPid())
        .filter(({ command }) => command.includes(serviceId))
        .map(({ pid }) => pid);

    /** Where the process of the service is reached, and with which token: what the actor host tells a handler. */
    async function address(): Promise<{ path: string; token: string }> {
      const host = await connectTo(stack.servicesSocket, await tokenFor(stack.dataDir, endpointId));
      const { to } = await host.send({ pool: POOL, ...small });
      await host.close();
      if (!to) throw new Error('the call is not moved');
      return { path: join(dirname(stack.servicesSocket), to.socket), token: to.token };
    }

    function rawConnection(path: string): Socket {
      const socket = connect(path);
      socket.on('error', () => undefined);
      sockets.push(socket);
      return socket;
    }

    /** A connection with the process of the service. */
    function authenticated({ path, token }: { path: string; token: string }): Socket {
      const socket = rawConnection(path);
      socket.write(encodeFrame('request', 0, JSON.stringify({ token }), Buffer.alloc(0)));
      return socket;
    }

    const closed = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()));

    /** Of the actor host and the process of the service. */
    async function memoryMb(): Promise<number> {
      const pids = [hostPid(), ...processes()];
      const statuses = await Promise.all(
        pids.map((pid) => readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')),
      );
      return statuses.reduce(
        (sum, status) => sum + Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024,
        0,
      );
    }

    async function expectServed(): Promise<void> {
      const answer = await send(small);
      expect(answer.ok, answer.message).to.equal(true);
    }

    it(`callers of a ${type} service that send nothing, or too much, before their token are disconnected`, async () => {
      for (const path of [stack.servicesSocket, (await address()).path]) {
        const silent = rawConnection(path);
        const tooMuch = rawConnection(path);
        tooMuch.resume();
        const head = JSON.stringify({ token: 'x'.repeat(10_000) });
        tooMuch.write(encodeFrame('request', 1, head, Buffer.alloc(1024 * 1024)));
        await closed(tooMuch);
        silent.resume();
        await closed(silent);
      }
      await expectServed();
    });

    it(`callers of a ${type} service that never read their answers do not fill the memory`, async () => {
      const [before, pids] = [await memoryMb(), processes()];
      const to = await address();
      for (let connection = 0; connection < 8; connection++) {
        const socket = authenticated(to);
        socket.pause();
        for (let number = 1; number <= 100; number++) socket.write(frame(number, large));
      }
      // 3 GiB were asked for.
      for (let look = 0; look < 20; look++) {
        await send(small).catch(() => undefined);
        expect(await memoryMb()).to.be.below(before + 3 * MEMORY_MB);
      }
      for (const socket of sockets.splice(0)) socket.destroy();
      await eventually(expectServed, 20_000);
      if (countsAnswers) expect(processes()).to.deep.equal(pids);
      else if (prepare) await send(prepare);
    });

    // Of 60 MiB. A program may reserve memory for all of it when little has come.
    for (const sentMb of [14, 5])
      it(`callers of a ${type} service that send ${sentMb} MiB of a call do not fill the memory, and time out`, async () => {
        const [before, pids] = [await memoryMb(), processes()];
        const to = await address();
        const beginning = frame(1, takesBytes(60 * 1024 * 1024)).subarray(0, sentMb * 1024 * 1024);
        const ends = Array.from({ length: 20 }, () => {
          const socket = authenticated(to);
          socket.resume();
          socket.write(beginning);
          return closed(socket);
        });
        // There is room for a few of them.
        await Promise.race(ends);
        await expectServed();
        expect(await memoryMb()).to.be.below(before + 1.5 * MEMORY_MB);
        // The others do not send the rest in the time that a request may take.
        await Promise.all(ends);
        const answer = await send(takesBytes(10 * 1024 * 1024));
        expect(answer.ok, answer.message).to.equal(true);
        expect(processes()).to.deep.equal(pids);
      });

    it(`callers of a ${type} service that violate the protocol do not delay others`, async () => {
      const client = await connectAs(stack, endpointId);
      const { payload = '', ...head } = unclosed;
      const refused = client.send({ pool: POOL, ...head }, payload);
      await expectServed();
      expect(await refused).to.include({ ok: false, kind: 'invalid' });
      for (const name of ['__proto__', 'constructor', 'x'.repeat(100_000)]) {
        expect(await client.send({ pool: name, op: 'get' })).to.include({ kind: 'unbound' });
        expect(await client.send({ pool: POOL, op: name })).to.include({ kind: 'invalid' });
      }
      await client.close();
    });
  });
