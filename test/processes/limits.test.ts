/**
 * Limits of endpoints in force: on requests in the front, on processes on the gateways, and what bodies may take in
 * all.
 */
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { ATTACKS } from '../support/hostile/sdk-attacks.js';
import { type Answer, type Call, call } from '../support/http.js';
import { outcomes, startLoad } from '../support/load.js';
import { isRunning } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';

interface EndpointView {
  readonly id: string;
  readonly status: string;
  readonly last_error: string | null;
  readonly pid: number | null;
  readonly limits: Record<string, number> | null;
}

const MEGABYTE = 1024 * 1024;

describe('limits of endpoints', () => {
  let stack: Stack;
  before(async () => {
    // Limits count for all threads together.
    const env = {
      GATEWAY_CONCURRENCY: '3',
      GATEWAY_MEMORY_MB: '32',
      GATEWAY_BODY_LIMIT_BYTES: String(4 * MEGABYTE),
    };
    stack = await startStack({ processes: ['web', 'worker', 'gateway'], env });
  });
  after(() => stack.close());

  const at = (path: string, action: string, options?: Call) =>
    call(`${stack.gatewayUrl}${path}?do=${action}`, { method: 'POST', ...options });
  const view = async (id: string) => (await must(stack.api.get(`/api/endpoints/${id}`))) as EndpointView;
  const deploy = (path: string, limits: object | null = null) =>
    stack.deploy({ path, method: 'POST', code: ATTACKS, limits });
  const limit = (id: string, limits: object | null) =>
    must(stack.api.put(`/api/endpoints/${id}`, { limits }));
  const inFlight = async () => {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  };
  /** Ends the action `wait` of a handler process. */
  const release = (pid: number | null) => writeFile(`/proc/${pid}/root/tmp/go-on`, '');
  const countOf = (answers: readonly Answer[], status: number) =>
    answers.filter((answer) => answer.status === status).length;

  describe('concurrent requests', () => {
    it('answers 429 with Retry-After to concurrent requests over the limit, and finishes active ones', async () => {
      const id = await deploy('/overloaded', { concurrent_requests: 3 });
      const answers: Answer[] = [];
      const calls = Array.from({ length: 20 }, async () => answers.push(await at('/overloaded', 'wait')));
      await eventually(() => expect(answers).to.have.lengthOf(17));
      expect(countOf(answers, 429)).to.equal(17);
      await release((await view(id)).pid);
      await Promise.all(calls);
      expect(countOf(answers, 200)).to.equal(3);
      const [refused] = answers;
      expect(refused?.headers).to.include({ 'retry-after': '1', 'content-type': 'application/json' });
      expect(JSON.parse(refused?.text ?? '')).to.deep.equal({
        error: 'This endpoint has reached its limit of 3 concurrent requests.',
      });
      expect((await at('/overloaded', 'nothing')).status).to.equal(200);
    });

    it('counts concurrent requests in a handler that is being replaced, and applies a new limit', async () => {
      const id = await deploy('/swapped', { concurrent_requests: 2 });
      const active = [at('/swapped', 'wait'), at('/swapped', 'wait')];
      await eventually(async () => expect(await inFlight()).to.equal(2));
      const { pid } = await view(id);
      await limit(id, { concurrent_requests: 2, memory_mb: 300 });
      await eventually(async () => expect((await view(id)).pid).not.to.be.oneOf([pid, null]));
      expect((await at('/swapped', 'nothing')).status).to.equal(429);
      await limit(id, { concurrent_requests: 3, memory_mb: 300 });
      await eventually(async () => expect((await at('/swapped', 'nothing')).status).to.equal(200));
      await release(pid);
      expect(countOf(await Promise.all(active), 200)).to.equal(2);
    });
  });

  describe('deadlines', () => {
    it('gives a request the deadline that its endpoint had when the request was received', async () => {
      const id = await deploy('/before', { timeout_ms: 3_000 });
      const late = at('/before', 'sleep&ms=20000');
      await eventually(async () => expect(await inFlight()).to.equal(1));
      await limit(id, { timeout_ms: 30_000 });
      // The gateway has the new limit.
      await eventually(async () => expect((await at('/before', 'sleep&ms=3500')).status).to.equal(200));
      expect(JSON.parse((await late).text)).to.deep.equal({
        error: 'The handler did not answer within 3000 ms.',
      });
    });

    it('answers 504 after the deadline of the endpoint, and applies a changed one to later requests', async () => {
      const id = await deploy('/deadline', { timeout_ms: 300 });
      const { status, text } = await at('/deadline', 'sleep&ms=5000');
      expect([status, JSON.parse(text)]).to.deep.equal([
        504,
        { error: 'The handler did not answer within 300 ms.' },
      ]);
      await limit(id, null);
      expect((await view(id)).limits).to.equal(null);
      await eventually(async () => expect((await at('/deadline', 'sleep&ms=600')).status).to.equal(200));
    });
  });

  describe('limits of processes', () => {
    it('applies changed limits of processes to a running endpoint without a failed request', async () => {
      const id = await deploy('/changed');
      const files = async () => Number((await at('/changed', 'files')).text);
      expect(await files()).to.be.within(900, 1024);
      const { pid } = await view(id);
      const load = await startLoad({
        targets: [stack.gatewayUrl],
        clients: 4,
        request: () => ({ path: '/changed?do=sleep&ms=20', method: 'POST', text: 'done' }),
      });
      for (const open_files of [100, 50, 200]) {
        await limit(id, { open_files });
        await eventually(async () => expect(await files()).to.be.within(open_files - 40, open_files));
      }
      expect(outcomes(await load.stop())).to.deep.equal({});
      await eventually(() => expect(isRunning(pid)).to.equal(false));
      expect(await view(id)).to.include({ status: 'running' });
    });

    it('serves a handler with the smallest limits of processes, and kills it when it exceeds them', async () => {
      const id = await deploy('/tight');
      const { pid } = await view(id);
      await limit(id, { open_files: 32, processes: 16, memory_mb: 16 });
      await eventually(async () => {
        const { status } = await at('/tight', 'nothing');
        expect(status).to.equal(200);
        expect((await view(id)).pid).not.to.equal(pid);
      });
      await at('/tight', 'memory-in-children');
      const lines = stack.processes.get('gateway')?.logged.lines ?? [];
      await eventually(() =>
        expect(
          lines.find(({ msg, endpoint_id }) => msg === 'handler crashed' && endpoint_id === id)?.['reason'],
        ).to.match(/may use 16 \(memory_mb\)/),
      );
      await eventually(async () => expect((await at('/tight', 'nothing')).status).to.equal(200));
    });

    it('reduces limits above those of a gateway with another configuration, and logs which', async () => {
      const id = await deploy('/cut', { open_files: 900 });
      await stack.processes.get('gateway')?.end();
      const gateway = await stack.start('gateway', { HANDLER_OPEN_FILES: '64' });
      await eventually(async () => expect(Number((await at('/cut', 'files')).text)).to.be.within(1, 64));
      const warned = gateway.logged.lines.find(
        ({ msg, endpoint_id }) => /are above those of this gateway/.test(String(msg)) && endpoint_id === id,
      );
      expect(warned?.['limits']).to.deep.equal(['open_files']);
      await stack.processes.get('gateway')?.end();
      await stack.start('gateway');
    });
  });

  describe('bodies in a gateway', () => {
    /** Sends the head of a request, and of its body so many bytes. */
    function upload(path: string, length: number, bytes: number): Socket {
      const { hostname, port } = new URL(stack.gatewayUrl);
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`);
      socket.write(Buffer.alloc(bytes));
      return socket;
    }

    /** Asks for a large answer, and reads no more than its beginning. */
    async function askWithoutReading(path: string): Promise<Socket> {
      const { hostname, port } = new URL(stack.gatewayUrl);
      const socket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write(`POST ${path}?do=megabytes&mb=12 HTTP/1.1\r\nHost: x\r\n\r\n`);
      await once(socket, 'readable');
      return socket;
    }

    const send = (path: string, megabytes: number) =>
      at(path, 'read-body', { body: Buffer.alloc(megabytes * MEGABYTE) });

    it('answers 503 to requests whose bodies would exceed the memory limit of the gateway', async () => {
      await deploy('/bodies');
      expect((await send('/bodies', 4)).text).to.equal(String(4 * MEGABYTE));
      // Bodies that never end, until no more have room.
      const sockets: Socket[] = [];
      try {
        const refused = await eventually(async () => {
          sockets.push(upload('/bodies', 4 * MEGABYTE, 4 * MEGABYTE - 100_000));
          const answer = await send('/bodies', 3);
          expect(answer.status).to.equal(503);
          return answer;
        });
        expect(refused.headers).to.include({ 'retry-after': '1' });
        expect(JSON.parse(refused.text).error).to.match(/has no memory left for this body/);
        expect((await at('/bodies', 'nothing')).status, 'without a body').to.equal(200);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
      await eventually(async () => expect((await send('/bodies', 3)).status).to.equal(200));
    });

    it('counts the memory of response bodies until the client has received them, or disconnected', async () => {
      await deploy('/unread');
      const sockets: Socket[] = [];
      try {
        await eventually(async () => {
          sockets.push(await askWithoutReading('/unread'));
          const { status, text } = await at('/unread', 'megabytes&mb=12');
          expect(status, text.slice(0, 100)).to.equal(503);
        });
        expect((await at('/unread', 'nothing')).status, 'a small answer').to.equal(200);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
      await eventually(async () => expect((await at('/unread', 'megabytes&mb=12')).status).to.equal(200));
    });

    it('does not replace a handler whose responses wait for memory that slow clients hold', async () => {
      const innocent = await deploy('/innocent');
      // One endpoint alone cannot have all the memory.
      const hogs = ['/hog', '/other-hog'];
      const ids = [innocent, ...(await Promise.all(hogs.map((path) => deploy(path))))];
      // With the reason for another one.
      const processes = () =>
        Promise.all(ids.map(async (id) => (({ pid, last_error }) => ({ pid, last_error }))(await view(id))));
      const before = await processes();
      const sockets: Socket[] = [];
      try {
        for (const path of hogs)
          await eventually(async () => {
            // Asked again because it is refused as long as an earlier answer holds memory.
            sockets.push(await askWithoutReading(path));
            // Such an answer can arrive, but is more than the endpoint may have besides the one that is not read.
            expect((await at(path, 'megabytes&mb=5')).status).to.equal(503);
          });
        const answers = Array.from({ length: 4 }, () => at('/innocent', 'megabytes&mb=12'));
        // Meanwhile they begin to arrive.
        for (let round = 0; round < 10; round++)
          expect((await at(hogs[0] ?? '', 'sleep&ms=100')).status).to.equal(200);
        for (const socket of sockets) socket.destroy();
        const statuses = (await Promise.all(answers)).map(({ status }) => status);
        for (const status of statuses) expect(status, statuses.join()).to.be.oneOf([200, 503]);
        expect(statuses).to.include(200);
      } finally {
        for (const socket of sockets) socket.destroy();
      }
      expect(await processes()).to.deep.equal(before);
      expect(await view(innocent)).to.include({ status: 'running', last_error: null });
    });
  });
});
