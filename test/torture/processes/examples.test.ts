/**
 * The handlers in `examples/`: compiled, started and called over HTTP, with real backends for those that use services.
 */

import { readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { expect } from 'chai';
import type { ServiceType } from '../../../src/model/service-configs.js';
import { BACKENDS, type RunningBackend } from '../../support/backends/all.js';
import type { HttpClient, HttpResponse } from '../../support/client.js';
import { deployExample, EXAMPLES_FOLDER, importExample } from '../../support/examples.js';
import { type Stack, startStack } from '../../support/processes.js';
import { type Activity, bind, createService } from '../../support/test-services.js';
import { launchBrowser } from '../../support/ui.js';
import { openSocket, refusedSocket } from '../../support/websocket.js';

type Call = (gateway: HttpClient) => Promise<HttpResponse>;

const FORM = `--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nSun\r\n--b\r\nContent-Disposition: form-data; name="photo"; filename="sun.jpg"\r\nContent-Type: image/jpeg\r\n\r\n1234\r\n--b--\r\n`;

/** Examples without services: how they are called. */
const PLAIN: Readonly<Record<string, Call>> = {
  hello: (gateway) => gateway.get('/hello/J%C3%BCrgen'),
  echo: (gateway) => gateway.post('/echo', { text: 'hi', times: 2 }),
  upload: (gateway) =>
    gateway.post('/upload', FORM, { headers: { 'content-type': 'multipart/form-data; boundary=b' } }),
  'async-sleep': (gateway) => gateway.get('/sleep/5'),
  'server-sent-events': (gateway) => gateway.get('/countdown/2?every=1'),
};

/** One example for each service type: how it is called, and what it answers then. */
const WITH_SERVICE: Readonly<
  Record<ServiceType, { example: string; call: Call; answers: (body: unknown) => void }>
> = {
  sqlite: {
    example: 'db-sqlite',
    call: (gateway) => gateway.post('/visits/home'),
    answers: (body) => expect(body).to.include({ page: 'home' }).and.to.have.property('visits').at.least(1),
  },
  postgres: {
    example: 'db-postgres',
    call: (gateway) => gateway.post('/books', { title: 'Emma', author: 'Jane Austen', year: 1815 }),
    answers: (body) => expect(body).to.have.nested.property('[0].title', 'Emma'),
  },
  mysql: {
    example: 'db-mysql',
    call: (gateway) => gateway.post('/orders', { customer: 'Ada', items: [{ name: 'tea', pieces: 2 }] }),
    answers: (body) => expect(body).to.deep.equal({ id: 1, items: 1 }),
  },
  redis: {
    example: 'cache-redis',
    call: (gateway) => gateway.get('/primes/1000'),
    answers: (body) => expect(body).to.have.property('primes', 168),
  },
  mongodb: {
    example: 'documents-mongodb',
    call: (gateway) => gateway.post('/events', { kind: 'login', user: 'ada' }),
    answers: (body) => expect(body).to.have.deep.nested.property('latest[0]', { kind: 'login', user: 'ada' }),
  },
  objstore: {
    example: 'files-objstore',
    call: async (gateway) => {
      await gateway.put('/files/a%20file.txt', 'content', { headers: { 'content-type': 'text/plain' } });
      return gateway.get('/files/a%20file.txt');
    },
    answers: (body) => expect(body).to.equal('content'),
  },
  memcached: {
    example: 'cache-memcached',
    call: (gateway) => gateway.get('/limited'),
    answers: (body) => expect(body).to.have.property('left').at.least(0),
  },
  ftp: {
    example: 'files-ftp',
    call: (gateway) =>
      gateway.post('/exports/january', [
        ['item', 'pieces'],
        ['tea', '2'],
      ]),
    answers: (body) =>
      expect(body).to.deep.equal({ path: 'exports/january.csv', size: 20, files: ['january.csv'] }),
  },
  http: {
    example: 'fetch-http',
    call: (gateway) => gateway.get('/rates/EUR?in=CHF,DKK'),
    answers: (body) => expect(body).to.deep.equal({ base: 'EUR', rates: { CHF: 0.95, DKK: 7.46 } }),
  },
  email: {
    example: 'mail-send',
    call: (gateway) => gateway.post('/contact', { email: 'ada@example.com', text: 'Hello!' }),
    answers: (body) => expect(body).to.have.property('message_id').that.matches(/@/),
  },
};

describe('examples', function () {
  this.timeout(120_000);
  let stack: Stack;
  const backends: RunningBackend[] = [];
  before(async () => {
    stack = await startStack({ env: { SQLITE_DIR: tmpdir() } });
  });
  after(async () => {
    await stack.close();
    for (const backend of backends) await backend.remove();
  });

  /** Creates a service of this type with a backend of its own. */
  async function service(type: ServiceType): Promise<string> {
    const backend: RunningBackend = await BACKENDS[type]();
    backends.push(backend);
    return createService(stack.api, type, backend.config);
  }

  async function activity(id: string, operation: 'activate' | 'deactivate'): Promise<Activity> {
    return (await stack.api.post(`/api/services/${id}/${operation}`)).body as Activity;
  }

  it('has a test for each example in examples/', async () => {
    const called = [...Object.keys(PLAIN), ...Object.values(WITH_SERVICE).map(({ example }) => example)];
    const entries = await readdir(EXAMPLES_FOLDER, { withFileTypes: true });
    const examples = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    // One is called in large-objects.test.ts.
    expect(examples).to.have.same.members([
      ...called,
      ...['petstore', 'websocket-chat', 'websocket-chat-page', 'upload-stream'],
    ]);
  });

  describe('without services', () => {
    for (const [name, call] of Object.entries(PLAIN)) {
      it(`compiles, starts and calls the example ${name}`, async () => {
        await deployExample(stack.api, name, service);
        const { status, body } = await call(stack.gateway);
        expect(status, JSON.stringify(body)).to.be.within(200, 299);
      });
    }

    it('greets by the percent-decoded name in the example hello', async () => {
      const { body } = await stack.gateway.get('/hello/J%C3%BCrgen');
      expect(body).to.deep.equal({ message: 'Hello, Jürgen!' });
    });
  });

  describe('with one service of each type: bind, activate, call, deactivate', () => {
    for (const [type, { example, call, answers }] of Object.entries(WITH_SERVICE)) {
      it(`serves the example ${example} only while its ${type} service is active`, async () => {
        let id = '';
        await deployExample(stack.api, example, async () => {
          id = await service(type as ServiceType);
          return id;
        });
        const before = await call(stack.gateway);
        expect(before.status, JSON.stringify(before.body)).to.equal(503);

        const { success, data } = await activity(id, 'activate');
        expect(success).to.equal(true);
        expect(data?.message).to.match(/^Connected to /);
        const during = await call(stack.gateway);
        expect(during.status, JSON.stringify(during.body)).to.be.within(200, 299);
        answers(during.body);

        expect((await activity(id, 'deactivate')).success).to.equal(true);
        const after = await call(stack.gateway);
        expect(after.status, JSON.stringify(after.body)).to.equal(503);
        // The reason is in the endpoint's log, not in the answer.
        expect(after.body).to.deep.equal({ error: 'Service unavailable' });
      });
    }
  });

  for (const type of ['sqlite', 'postgres', 'mysql'] as const) {
    it(`imports the example bundle petstore, which keeps pets in ${type}`, async () => {
      const id = await service(type);
      for (const { id: endpoint } of await endpointsOf('/pets')) {
        await stack.api.delete(`/api/endpoints/${endpoint}`);
      }
      const imported = await importExample(stack, 'petstore');
      expect(imported).to.deep.include({
        endpoints_created: 5,
        endpoints_updated: 0,
        handlers_matched: 5,
        compiled: 5,
        started: 5,
        errors: [],
      });
      for (const endpoint of imported.endpoints) await bind(stack.api, endpoint.id, id, 'db');
      await activity(id, 'activate');
      const { gateway } = stack;
      const created = await gateway.post('/pets', { name: 'Tom', kind: 'cat' });
      expect(created.status, JSON.stringify(created.body)).to.equal(201);
      const tom = created.body as { id: string };
      expect(tom).to.include({ name: 'Tom', kind: 'cat' });
      const path = `/pets/${tom.id}`;
      expect((await gateway.get(path)).body).to.deep.equal(tom);
      expect((await gateway.get('/pets')).body).to.deep.equal([tom]);
      const renamed = await gateway.put(path, { name: 'Tim', kind: 'cat', tags: ['new'] });
      expect(renamed.body).to.deep.equal({ id: tom.id, name: 'Tim', kind: 'cat', tags: ['new'] });
      expect((await gateway.post('/pets', { name: ' ', kind: 'cat' })).status).to.equal(400);
      expect((await gateway.delete(path)).status).to.equal(204);
      for (const missing of [gateway.get(path), gateway.delete(path), gateway.put(path, renamed.body)]) {
        expect((await missing).status).to.equal(404);
      }
      expect((await gateway.get('/pets')).body).to.deep.equal([]);
    });
  }

  describe('websocket-chat', () => {
    before(async () => {
      await deployExample(stack.api, 'websocket-chat', async (type) => {
        const id = await service(type);
        expect((await activity(id, 'activate')).success).to.equal(true);
        return id;
      });
    });
    const enter = (room: string, name: string) =>
      openSocket(`${stack.gatewayUrl}/chat/${room}/socket?name=${name}`);

    it('delivers messages of websocket-chat to everybody in the room, also to those who join later', async () => {
      const [ada, bob, other] = await Promise.all([
        enter('lobby', 'Ada'),
        enter('lobby', 'Bob'),
        enter('attic', 'Eve'),
      ]);
      ada.socket.send('hello');
      await bob.has(1);
      bob.socket.send('<b>hi</b>');
      await ada.has(2);
      const said = [
        { name: 'Ada', text: 'hello' },
        { name: 'Bob', text: '<b>hi</b>' },
      ];
      const heard = ({ messages }: { messages: readonly unknown[] }) =>
        messages.map((text) => JSON.parse(String(text)));
      expect([heard(ada), heard(bob)]).to.deep.equal([said, said]);
      const late = await enter('lobby', 'Cleo');
      await late.has(2);
      expect(heard(late)).to.deep.equal(said);
      expect(other.messages).to.be.empty;
      late.socket.send('x'.repeat(2001));
      await late.has(3);
      expect(heard(late)[2]).to.have.property('error');
      for (const { socket } of [ada, bob, other, late]) socket.close();
      expect((await refusedSocket(`${stack.gatewayUrl}/chat/lobby/socket?name=`)).status).to.equal(400);
    });

    it('lets two people chat in browsers with the example websocket-chat-page', async () => {
      await deployExample(stack.api, 'websocket-chat-page', service);
      const browser = await launchBrowser();
      try {
        const pages = await Promise.all(
          ['Ada', 'Bob'].map(async (name) => {
            const page = await browser.newPage();
            await page.goto(`${stack.gatewayUrl}/chat/hall`);
            await page.getByLabel('Your name').fill(name);
            await page.getByRole('textbox', { name: 'Message' }).fill(`I am ${name}`);
            await page.getByRole('button', { name: 'Send' }).click();
            return page;
          }),
        );
        for (const page of pages)
          for (const text of ['Ada: I am Ada', 'Bob: I am Bob']) await page.getByText(text).waitFor();
        // Names and texts are texts.
        await pages[0]?.getByRole('textbox', { name: 'Message' }).fill('<i>x</i>');
        await pages[0]?.getByRole('button', { name: 'Send' }).click();
        await pages[1]?.getByText('Ada: <i>x</i>').waitFor();
      } finally {
        await browser.close();
      }
    });
  });

  async function endpointsOf(path: string): Promise<{ id: string }[]> {
    const { data } = (await stack.api.get('/api/endpoints')).body as { data: { id: string; path: string }[] };
    return data.filter((endpoint) => endpoint.path.startsWith(path));
  }
});
