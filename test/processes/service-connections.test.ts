/**
 * Handlers that open as many connections with the actor host as they can, or send garbage bytes on them, and the
 * effect on others.
 */
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { type Stack, startStack } from '../support/processes.js';
import { connectServices, type ServiceClient } from '../support/service-client.js';
import {
  activeService,
  bind,
  connectAs,
  createEndpoint,
  SECRET_KEY,
  tokenFor,
} from '../support/test-services.js';

/** Of the actor host here. */
const OPEN_FILES = 512;
const CONNECTIONS = 409;
const WITHOUT_TOKEN = 204;
const OF_ONE_ENDPOINT = 51;

describe('connections with the actor host', function () {
  this.timeout(60_000);
  let stack: Stack;
  let serviceId: string;
  let innocent: string;
  let hostile: string;
  const sockets: Socket[] = [];
  const clients: ServiceClient[] = [];
  before(async () => {
    stack = await startStack({
      processes: ['web', 'actor-host'],
      env: { SECRET_KEY },
      openFiles: OPEN_FILES,
    });
    serviceId = await activeService(stack.api, 'sqlite', { path: 'own.db', create_if_missing: true });
    innocent = await createEndpoint(stack.api, '/innocent');
    hostile = await createEndpoint(stack.api, '/hostile');
    await bind(stack.api, innocent, serviceId, 'db');
  });
  after(() => stack.close());
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    for (const client of clients.splice(0)) await client.close();
    await eventually(() => expect(descriptors()).to.be.below(100));
  });

  const descriptors = () => readdirSync(`/proc/${stack.processes.get('actor-host')?.pid}/fd`).length;

  /** Opens a connection, and says nothing on it. */
  function open(): Promise<void> {
    return new Promise((resolve) => {
      const socket = connect(stack.servicesSocket);
      sockets.push(socket);
      socket.once('connect', resolve);
      // Closed before it was there.
      socket.on('error', () => resolve());
    });
  }

  /** What an endpoint that does no harm gets meanwhile. */
  async function innocentIsServed(): Promise<void> {
    const client = await connectAs(stack, innocent);
    const answer = await client.send({ pool: 'db', op: 'query' }, '{"sql":"SELECT 1","params":[]}');
    await client.close();
    expect(answer.ok, answer.message).to.equal(true);
    const { body } = await stack.api.post(`/api/services/${serviceId}/test`);
    expect(body).to.have.nested.property('data.connected', true);
  }

  it('limits the connections of an endpoint with the actor host, and refuses more', async () => {
    const token = await tokenFor(stack.dataDir, hostile);
    let taken = 0;
    for (let count = 0; count < OPEN_FILES; count++) {
      const client = await connectServices(stack.servicesSocket);
      clients.push(client);
      const answer = await client.send({ token });
      if (answer.ok) taken++;
      else {
        expect(answer).to.include({ kind: 'busy' });
        expect(answer.message).to.match(/its endpoint has \d+ connections/);
        await client.closed;
      }
    }
    expect(taken).to.equal(OF_ONE_ENDPOINT);
    expect(descriptors()).to.be.below(OF_ONE_ENDPOINT + 100);
    await innocentIsServed();
    // Those that are closed leave room.
    for (const client of clients.splice(0)) await client.close();
    await eventually(async () => {
      const client = await connectServices(stack.servicesSocket);
      clients.push(client);
      expect(await client.send({ token })).to.include({ ok: true });
    });
  });

  it('limits connections without a token, replaces them by new ones, and lets them expire', async () => {
    for (let round = 0; round < 3; round++) {
      await Promise.all(Array.from({ length: OPEN_FILES }, () => open()));
      expect(descriptors()).to.be.below(WITHOUT_TOKEN + 100);
      await innocentIsServed();
    }
    await eventually(() => expect(descriptors()).to.be.below(100));
  });

  it('accepts a token that a connection with the actor host sends after two seconds', async () => {
    const client = await connectServices(stack.servicesSocket);
    clients.push(client);
    // The handler has to wait for the processor.
    await delay(2_000);
    const token = await tokenFor(stack.dataDir, hostile);
    expect(await client.send({ token })).to.include({ ok: true });
  });

  it('closes connections after protocol violations, and logs only some of these, without a stack', async () => {
    const host = stack.processes.get('actor-host');
    const before = host?.logged.lines.length ?? 0;
    const token = await tokenFor(stack.dataDir, hostile);
    const noFrame = Buffer.alloc(64, 0xff);
    const attempts = 1_000;
    const parallel = 20;
    const attempt = async () => {
      const client = await connectServices(stack.servicesSocket, token);
      client.write(noFrame);
      await client.closed;
    };
    for (let count = 0; count < attempts; count += parallel)
      await Promise.all(Array.from({ length: parallel }, attempt));
    const said = () => (host?.logged.lines ?? []).slice(before);
    const shown = () => said().filter(({ msg }) => /keep to the protocol|is refused/.test(msg ?? ''));
    const dropped = () => said().reduce((sum, line) => sum + Number(line['dropped'] ?? 0), 0);
    await eventually(() => expect(shown().length + dropped()).to.be.at.least(attempts));
    expect(dropped()).to.be.above(0);
    for (const line of shown()) {
      expect(line).to.include({ endpoint_id: hostile });
      expect(line).to.have.property('problem').that.is.a('string');
      expect(line).not.to.have.property('err');
    }
    await innocentIsServed();
  });

  it('limits the connections of all endpoints together, so that the actor host keeps descriptors', async () => {
    const tokens = await Promise.all(
      Array.from({ length: 12 }, (_, at) =>
        tokenFor(stack.dataDir, `00000000-0000-4000-8000-${String(at).padStart(12, '0')}`),
      ),
    );
    let taken = 0;
    for (const token of tokens)
      for (let count = 0; count <= OF_ONE_ENDPOINT; count++) {
        const client = await connectServices(stack.servicesSocket);
        clients.push(client);
        if ((await client.send({ token })).ok) taken++;
      }
    expect(taken).to.equal(CONNECTIONS - WITHOUT_TOKEN);
    const { body } = await stack.api.post(`/api/services/${serviceId}/test`);
    expect(body).to.have.nested.property('data.connected', true);
  });
});
