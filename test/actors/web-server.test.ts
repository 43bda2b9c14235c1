import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { Readable } from 'node:stream';
import { buffer, text } from 'node:stream/consumers';
import { expect } from 'chai';
import { actorFiles } from '../../src/actors/actor-files.js';
import { ActorHostClient } from '../../src/actors/client.js';
import { objstoreDriver } from '../../src/actors/drivers/objstore/driver.js';
import { createWebServer } from '../../src/actors/web-server.js';
import { planAnswer } from '../../src/actors/web-server-range.js';
import { AppError, type ErrorCode } from '../../src/errors.js';
import { type Database, openDatabase } from '../../src/store/database.js';
import { startActor } from '../support/actors.js';
import { type S3Backend, startS3Backend } from '../support/backends/s3.js';
import { type ObjectHost, type ObjectHostOptions, startObjectHost } from '../support/backends/s3-host.js';
import { eventually } from '../support/eventually.js';
import { NO_ID } from '../support/expect.js';
import { call } from '../support/http.js';
import { createTestLog } from '../support/log.js';
import { freePort } from '../support/ports.js';
import { createDatabase, type TestDatabase } from '../support/postgres.js';

const TOKEN = 'the token of the tests';
const SERVICE = '00000000-0000-4000-8000-000000000001';

describe('actor hosts and the management API', () => {
  let database: TestDatabase;
  let store: Database;
  let backend: S3Backend;
  const hosts: ObjectHost[] = [];
  const clients: ActorHostClient[] = [];

  before(async () => {
    database = await createDatabase();
    store = openDatabase(database.url, (error) => expect.fail(error.message));
    backend = await startS3Backend();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) client.close();
    for (const host of hosts.splice(0)) await host.close();
  });
  after(async () => {
    await backend?.remove();
    await store?.close();
    await database?.drop();
  });

  async function startHost(options: Partial<ObjectHostOptions> = {}): Promise<ObjectHost> {
    const services = [[SERVICE, backend.config]] as const;
    const host = await startObjectHost({ store, token: TOKEN, services, ...options });
    hosts.push(host);
    return host;
  }

  function clientWith(token = TOKEN): ActorHostClient {
    const client = new ActorHostClient({ store, token, log: createTestLog().log });
    clients.push(client);
    return client;
  }

  const write = (client: ActorHostClient, key: string, content: Buffer) =>
    client.writeObject(undefined, key, {
      size: content.length,
      type: 'text/plain',
      content: () => Readable.from([content]),
    });
  const read = async (client: ActorHostClient, key: string) =>
    buffer((await client.readObject(undefined, key, 'GET', {})).content);

  it('reaches an actor host on this machine over its socket', async () => {
    await startHost({ info: ({ socket }) => ({ socket }) });
    const client = clientWith();
    const content = randomBytes(100_000);
    expect(await write(client, 'local', content)).to.include({ bucket: 'files' });
    expect(content.equals(await read(client, 'local'))).to.equal(true);
    expect(await client.deleteObject(undefined, 'local')).to.deep.equal({ bucket: 'files', deleted: true });
  });

  it('reaches an actor host on another machine over the network, with the token', async () => {
    await startHost({ hostname: 'another-machine' });
    const content = randomBytes(100_000);
    const client = clientWith();
    await write(client, 'remote', content);
    expect(content.equals(await read(client, 'remote'))).to.equal(true);
    await fails(clientWith('wrong').listObjects(undefined, ''), 'no_actor_host', /SECRET_KEY/);
  });

  it('an actor host refuses requests over the network without the token', async () => {
    const { url } = await startHost();
    for (const authorization of [undefined, TOKEN, 'Bearer', `Bearer ${TOKEN}x`, `Basic ${TOKEN}`]) {
      for (const [method, path] of [
        ['GET', '/objects'],
        ['PUT', '/objects/content?key=a'],
        ['POST', `/services/${SERVICE}/test`],
        ['GET', '/nothing'],
      ] as const) {
        const headers = authorization === undefined ? {} : { authorization };
        const answer = await call(url + path, { method, headers });
        expect(answer.status, `${authorization} ${path}`).to.equal(401);
      }
    }
    const authorization = `Bearer ${TOKEN}`;
    expect((await call(`${url}/objects`, { headers: { authorization } })).status).to.equal(200);
    expect((await call(`${url}/nothing`, { headers: { authorization } })).status).to.equal(400);
  });

  it('an actor host survives requests whose target is not a path', async () => {
    const { url } = await startHost();
    const { port } = new URL(url);
    const authorization = `Authorization: Bearer ${TOKEN}\r\n`;
    for (const headers of ['', authorization]) {
      for (const target of ['//', '*', 'http://[', '/services/%ff/test', '/\\', 'x']) {
        const socket = connect(Number(port), '127.0.0.1');
        socket.end(`POST ${target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n${headers}\r\n`);
        expect(await text(socket), target).to.match(
          headers === '' ? /^HTTP\/1.1 40[01]/ : /^HTTP\/1.1 40[04]/,
        );
      }
    }
    expect(await clientWith().listObjects(undefined, 'none/')).to.deep.include({ objects: [] });
  });

  it('an actor host aborts a transfer whose client has stopped reading, and frees its connection', async () => {
    const actor = startActor(objstoreDriver, backend.config);
    const files = actorFiles(actor, backend.config.bucket);
    const size = 32 * 1024 * 1024;
    await files.write('stalled', Readable.from([Buffer.alloc(size)]), size, 'text/plain');
    const view = {
      testService: async () => undefined,
      objectFiles: () => ({ serviceId: SERVICE, files }),
    };
    const server = createWebServer(view, { log: createTestLog().log, tokens: [TOKEN], idleLimitMs: 200 });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
      socket.on('error', () => undefined);
      socket.write(
        `GET /objects/content?key=stalled HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${TOKEN}\r\n\r\n`,
      );
      await eventually(() => expect(actor.use.inUse).to.equal(1));
      await eventually(() => expect(actor.use.inUse).to.equal(0));
      socket.destroy();
    } finally {
      server.closeAllConnections();
      server.close();
      await actor.drain();
    }
  });

  it('skips an actor host that cannot be reached', async () => {
    const port = await freePort();
    await startHost({ hostname: 'another-machine', info: () => ({ url: `http://127.0.0.1:${port}` }) });
    const client = clientWith();
    await fails(client.listObjects(undefined, ''), 'no_actor_host', /can be reached/);
    await startHost({ hostname: 'another-machine' });
    expect(await client.listObjects(undefined, 'none')).to.deep.equal({ bucket: 'files', objects: [] });
  });

  it('says to start an actor host when there is none', async () => {
    await fails(clientWith().listObjects(undefined, ''), 'no_actor_host', /start the `actor-host` process/);
  });

  it('an actor host tests the connection of a service', async () => {
    await startHost();
    const client = clientWith();
    const tested = await client.testService(SERVICE, 'o');
    expect(tested).to.include({ connected: true });
    expect(tested).to.have.property('message').that.includes('bucket "files"');
    await fails(client.testService(NO_ID, 'o'), 'not_found', /no service/);
  });

  it('reports the errors of an actor host with their codes', async () => {
    await startHost();
    const client = clientWith();
    await fails(client.readObject(undefined, 'missing', 'GET', {}), 'not_found', /no object "missing"/);
    await fails(client.readObject(undefined, 'missing', 'HEAD', {}), 'not_found', /no such object/);
    await fails(client.readObject(NO_ID, 'a', 'GET', {}), 'no_object_storage', /./);
    await fails(client.readObject(NO_ID, 'a', 'HEAD', {}), 'no_object_storage', /./);
    await fails(client.listObjects(NO_ID, ''), 'no_object_storage', /./);
    await fails(client.deleteObject(undefined, ''), 'invalid_input', /parameter key is missing/);
  });

  it('transfers large and small objects over a socket and over the network alike', async () => {
    const key = 'sizes';
    for (const where of [
      { info: ({ socket }: { socket: string }) => ({ socket }) },
      { hostname: 'another' },
    ]) {
      const host = await startHost(where);
      const client = clientWith();
      for (const size of [0, 1, 262_143, 262_144, 262_145, 5_000_000]) {
        const content = randomBytes(size);
        await write(client, key, content);
        expect(content.equals(await read(client, key)), `${size} bytes`).to.equal(true);
        const { headers, content: none } = await client.readObject(undefined, key, 'HEAD', {});
        expect(headers).to.include({ 'content-length': String(size) });
        expect(await buffer(none)).to.have.length(0);
      }
      await host.close();
      hosts.pop();
    }
  });

  it('answers 502 when an object is replaced after its headers were read', async () => {
    const actor = startActor(objstoreDriver, backend.config);
    const files = actorFiles(actor, 'files');
    const store = (text: string) =>
      files.write('changing', Readable.from([Buffer.from(text)]), text.length, 'text/plain');
    const changing = {
      ...files,
      head: async (key: string) => {
        const described = await files.head(key);
        await store('the new one');
        return described;
      },
    };
    const view = {
      testService: async () => undefined,
      objectFiles: () => ({ serviceId: SERVICE, files: changing }),
    };
    const server = createWebServer(view, { log: createTestLog().log, tokens: [TOKEN] });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      await store('the old one');
      const { port } = server.address() as AddressInfo;
      const answer = await call(`http://127.0.0.1:${port}/objects/content?key=changing`, {
        headers: { authorization: `Bearer ${TOKEN}` },
      });
      expect(answer.status).to.equal(502);
      expect(answer.text).to.match(/"changing\\" was replaced meanwhile/);
    } finally {
      server.closeAllConnections();
      server.close();
      await actor.drain();
    }
  });

  it('uses the connection to an actor host again, also after a failure', async () => {
    const { url } = await startHost({ hostname: 'another-machine' });
    const client = clientWith();
    const connections = () =>
      process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    await fails(client.readObject(undefined, 'missing', 'HEAD', {}), 'not_found', /./);
    const before = connections();
    for (let i = 0; i < 20; i++) {
      await fails(client.readObject(undefined, 'missing', 'HEAD', {}), 'not_found', /./);
      await fails(client.readObject(undefined, 'missing', 'GET', {}), 'not_found', /./);
    }
    expect(connections(), url).to.be.at.most(before + 2);
  });

  it('reports why an actor host refuses an upload, however much of it is not sent yet', async () => {
    await startHost();
    const client = clientWith();
    const content = Buffer.alloc(20_000_000);
    const upload = client.writeObject(NO_ID, 'a', {
      size: content.length,
      type: 'text/plain',
      content: () => Readable.from([content]),
    });
    await fails(upload, 'no_object_storage', /./);
  });

  it('stores nothing of an upload whose source fails', async () => {
    await startHost();
    const client = clientWith();
    const upload = client.writeObject(undefined, 'failing', {
      size: 20_000_000,
      type: 'text/plain',
      content: () =>
        Readable.from(
          (function* () {
            yield Buffer.alloc(10_000_000);
            throw new Error('the disk is gone');
          })(),
        ),
    });
    const error = await upload.catch((thrown: unknown) => thrown);
    expect(error).to.have.property('message', 'the disk is gone');
    expect(await client.listObjects(undefined, 'failing')).to.have.deep.property('objects', []);
  });
});

describe('ranges of objects', () => {
  const object = { key: 'k', size: 10, etag: 'e', last_modified: new Date('2026-01-31T10:00:00Z') };

  it('sends an empty object without a range, and answers 416 to a range of it', () => {
    const empty = planAnswer({ ...object, size: 0 }, {});
    expect(empty).to.deep.include({ status: 200, bytes: undefined });
    expect(planAnswer({ ...object, size: 0 }, { range: 'bytes=0-' }).status).to.equal(416);
    expect(planAnswer({ ...object, size: 0 }, { range: 'bytes=-1' }).status).to.equal(416);
  });

  it('ignores an invalid range of an object', () => {
    for (const range of ['bytes=', 'bytes=-', 'bytes=a-b', 'bytes=1', '0-1', 'bytes=0-1,2-3']) {
      expect(planAnswer(object, { range }).bytes, range).to.deep.equal({ start: 0, end: 9 });
    }
  });
});

async function fails(work: Promise<unknown>, code: ErrorCode, message: RegExp): Promise<void> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error, 'it was expected to fail').to.be.instanceOf(AppError);
  expect((error as AppError).message).to.match(message);
  expect((error as AppError).code).to.equal(code);
}
