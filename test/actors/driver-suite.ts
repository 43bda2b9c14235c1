/** What every driver has to do, tried through an actor against a real server. Each driver's own test calls it. */
import { createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import type { Driver, DriverAnswer } from '../../src/actors/driver.js';
import type { ServiceConfig, ServiceType } from '../../src/service-configs.js';
import { call, failsWith, startActor, type TestCall, tryConnection, withActor } from '../support/actors.js';
import type { TestBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/postgres.js';

/** How the suite is to try a driver. A text stands for a test that makes no sense for it, and is the reason. */
export interface DriverSuite<T extends ServiceType> {
  readonly start: () => Promise<TestBackend<T>>;
  /** The same service with a password the server does not take. */
  readonly wrongPassword: ((config: ServiceConfig<T>) => ServiceConfig<T>) | string;
  /** The same service at another address. */
  readonly at: ((config: ServiceConfig<T>, host: string, port: number) => ServiceConfig<T>) | string;
  /** A call that works on a fresh server as often as wanted. */
  readonly call: TestCall & { readonly check: (answer: DriverAnswer) => void };
  /** Something else than the type in the title, where a driver is tried more than once. */
  readonly title?: string;
}

/** A connection test has to be over after this. */
const TEST_LIMIT_MS = 5_000;

export function driverSuite<T extends ServiceType>(driver: Driver<T>, suite: DriverSuite<T>): void {
  describe(`driver ${suite.title ?? driver.type}: what all drivers do`, () => {
    let backend: TestBackend<T>;
    before(async function () {
      this.timeout(60_000);
      backend = await suite.start();
    });
    after(() => backend.remove());

    const harmless = call(suite.call);

    it('connects, answers, and says what answered', async () => {
      await withActor(driver, backend.config, async (actor) => {
        await actor.settled();
        expect(actor.state).to.have.property('kind', 'connected');
        suite.call.check(await actor.call(harmless));
      });
    });

    it('tests a connection, with its latency', async () => {
      const tested = await tryConnection(driver, backend.config);
      expect(tested, JSON.stringify(tested)).to.have.property('connected', true);
      if (!tested.connected) return;
      expect(tested.latency_ms).to.be.a('number').and.to.satisfy(Number.isInteger);
      expect(tested.message).to.match(/^Connected to .{3}/);
    });

    const { wrongPassword, at } = suite;
    if (typeof wrongPassword === 'string') {
      it(`has no password: ${wrongPassword}`, () => {
        expect(backend.config).to.not.have.property('password');
      });
    } else {
      it('says that the password is wrong', async () => {
        const tested = await tryConnection(driver, wrongPassword(backend.config));
        expect(tested).to.have.property('connected', false);
        expect(tested)
          .to.have.property('error')
          .that.matches(/password|key/i);
      });
    }

    if (typeof at === 'string') {
      it(`has no address: ${at}`, () => {
        expect(backend.config).to.not.have.property('host');
      });
    } else {
      it('says that the host is unknown', async () => {
        const tested = await tryConnection(driver, at(backend.config, 'no-such-host.invalid', 1));
        expect(tested)
          .to.have.property('error')
          .that.matches(/unknown host/);
      });

      it('says that the connection is refused', async () => {
        const tested = await tryConnection(driver, at(backend.config, '127.0.0.1', await freePort()));
        expect(tested)
          .to.have.property('error')
          .that.matches(/refused/);
      });

      it('gives up on a server that accepts and never answers', async function () {
        this.timeout(30_000);
        const silent = await silentServer();
        try {
          const config = at(backend.config, '127.0.0.1', silent.port);
          const started = performance.now();
          const tested = await tryConnection(driver, config);
          expect(performance.now() - started).to.be.below(TEST_LIMIT_MS);
          expect(tested)
            .to.have.property('error')
            .that.matches(/did not answer/);
          await withActor(driver, config, async (actor) => {
            await failsWith('unavailable', actor.call(harmless));
          });
        } finally {
          await silent.close();
        }
      });

      it('refuses calls while its server is away, and works again when it is back', async function () {
        this.timeout(60_000);
        await withActor(driver, backend.config, async (actor) => {
          suite.call.check(await actor.call(harmless));
          await backend.stop();
          try {
            await eventually(() => failsWith('unavailable', actor.call(harmless)));
          } finally {
            await backend.start();
          }
          await eventually(async () => suite.call.check(await actor.call(harmless)));
        });
      });

      it('connects by itself when its server comes later', async function () {
        this.timeout(60_000);
        await backend.stop();
        const actor = startActor(driver, backend.config);
        try {
          await actor.settled();
          expect(actor.state).to.have.property('kind', 'unreachable');
        } finally {
          await backend.start();
        }
        await eventually(async () => suite.call.check(await actor.call(harmless)));
        await actor.drain();
      });
    }

    it('refuses what it does not know', async () => {
      await withActor(driver, backend.config, async (actor) => {
        const message = await failsWith('invalid', actor.call(call({ operation: 'no-such-operation' })));
        expect(message).to.include('no-such-operation');
      });
    });

    it('makes 64 calls at once', async function () {
      this.timeout(60_000);
      await withActor(driver, backend.config, async (actor) => {
        const answers = await Promise.all(Array.from({ length: 64 }, () => actor.call(harmless)));
        for (const answer of answers) suite.call.check(answer);
      });
    });

    it('finishes calls under way when it is drained, and refuses new ones', async () => {
      const actor = startActor(driver, backend.config);
      await actor.settled();
      const underWay = Array.from({ length: 8 }, () => actor.call(harmless));
      const drained = actor.drain();
      await failsWith('inactive', actor.call(harmless));
      for (const answer of await Promise.all(underWay)) suite.call.check(answer);
      await drained;
      await failsWith('inactive', actor.call(harmless));
    });
  });
}

/** A server that accepts connections and never says a word. */
async function silentServer(): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.resume();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  return {
    port: address.port,
    close: () =>
      new Promise((resolve) => {
        for (const socket of sockets) socket.destroy();
        server.close(() => resolve());
      }),
  };
}
