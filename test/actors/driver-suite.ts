/** The common tests of all drivers, run through an actor against a real server. */
import { createServer, type Server, type Socket } from 'node:net';
import { expect } from 'chai';
import type { Driver } from '../../src/actors/driver.js';
import type { ActorCall } from '../../src/actors/driver-call.js';
import type { DriverAnswer } from '../../src/actors/operations.js';
import type { ConnectionState } from '../../src/actors/reconnecting-connection.js';
import type { ConnectionTest } from '../../src/model/connection-test.js';
import type { ServiceConfig, ServiceType } from '../../src/model/service-configs.js';
import { call, failsWith, startActor, type TestCall, tryConnection } from '../support/actors.js';
import type { TestBackend } from '../support/backend.js';
import { eventually } from '../support/eventually.js';
import { freePort } from '../support/ports.js';

/** What the suite uses of an actor. */
export interface SuiteActor {
  readonly state: ConnectionState;
  settled(): Promise<unknown>;
  call(call: ActorCall): Promise<DriverAnswer>;
  drain(): Promise<void>;
}

/** Options of the suite for one driver. A string is the reason why a test does not apply. */
export interface DriverSuite<T extends ServiceType> {
  readonly start: () => Promise<TestBackend<T>>;
  /** The same service with a wrong password. */
  readonly wrongPassword: ((config: ServiceConfig<T>) => ServiceConfig<T>) | string;
  /** The same service at another address. */
  readonly at: ((config: ServiceConfig<T>, host: string, port: number) => ServiceConfig<T>) | string;
  /** A call that can be repeated on a fresh server. */
  readonly call: TestCall & { readonly check: (answer: DriverAnswer) => void };
  /** Replaces the type in the title of a driver that is tested more than once. */
  readonly title?: string;
  /** What takes the place of actors and connection tests in this process. */
  readonly inProcesses?: Required<Runners<T>>;
}

interface Runners<T extends ServiceType> {
  /** @param connectTimeoutMs a shorter one, where it can be set */
  readonly start?: (config: ServiceConfig<T>, connectTimeoutMs?: number) => SuiteActor;
  readonly test?: (config: ServiceConfig<T>, timeoutMs?: number) => Promise<ConnectionTest>;
}

/** For a server that accepts a connection and never answers. */
const CONNECT_TIMEOUT_MS = 500;

export function driverSuite<T extends ServiceType>(driver: Driver<T>, suite: DriverSuite<T>): void {
  const name = suite.title ?? driver.type;
  describe(`driver ${name}: common tests of drivers`, () => {
    let backend: TestBackend<T>;
    before(async function () {
      this.timeout(60_000);
      backend = await suite.start();
    });
    after(() => backend.remove());

    const harmless = call(suite.call);
    const {
      start = (config, connectTimeoutMs) => startActor(driver, config, { connectTimeoutMs }),
      test = (config, timeoutMs) => tryConnection(driver, config, timeoutMs),
    }: Runners<T> = suite.inProcesses ?? {};

    /** Runs `use` with an actor, and always drains it afterwards. */
    async function withActor<R>(
      config: ServiceConfig<T>,
      use: (actor: SuiteActor) => Promise<R>,
      connectTimeoutMs?: number,
    ): Promise<R> {
      const actor = start(config, connectTimeoutMs);
      try {
        return await use(actor);
      } finally {
        await actor.drain();
      }
    }

    it(`the driver of ${name} connects, and answers a call`, async () => {
      await withActor(backend.config, async (actor) => {
        await actor.settled();
        expect(actor.state).to.have.property('kind', 'connected');
        suite.call.check(await actor.call(harmless));
      });
    });

    it(`the driver of ${name} tests a connection, and reports its latency and the product`, async () => {
      const tested = await test(backend.config);
      expect(tested, JSON.stringify(tested)).to.have.property('connected', true);
      if (!tested.connected) throw new Error('not connected');
      expect(tested.latency_ms).to.be.a('number').and.to.satisfy(Number.isInteger);
      expect(tested.message).to.match(/^Connected to .{3}/);
    });

    const { wrongPassword, at } = suite;
    if (typeof wrongPassword === 'string') {
      it(`the driver of ${name} has no password: ${wrongPassword}`, () => {
        expect(backend.config).to.not.have.property('password');
      });
    } else {
      it(`the driver of ${name} reports a wrong password`, async () => {
        const tested = await test(wrongPassword(backend.config));
        expect(tested).to.have.property('connected', false);
        expect(tested)
          .to.have.property('error')
          .that.matches(/password|key/i);
      });
    }

    if (typeof at === 'string') {
      it(`the driver of ${name} has no address: ${at}`, () => {
        expect(backend.config).to.not.have.property('host');
      });
    } else {
      it(`the driver of ${name} reports an unknown host`, async () => {
        const tested = await test(at(backend.config, 'no-such-host.invalid', 1));
        expect(tested)
          .to.have.property('error')
          .that.matches(/unknown host/);
      });

      it(`the driver of ${name} reports a refused connection`, async () => {
        const tested = await test(at(backend.config, '127.0.0.1', await freePort()));
        expect(tested)
          .to.have.property('error')
          .that.matches(/refused/);
      });

      it(`the driver of ${name} fails with a timeout when a server accepts connections and never answers`, async () => {
        const silent = await silentServer();
        try {
          const config = at(backend.config, '127.0.0.1', silent.port);
          const tested = await test(config, CONNECT_TIMEOUT_MS);
          expect(tested)
            .to.have.property('error')
            .that.matches(/did not answer/);
          const use = (actor: SuiteActor) => failsWith('unavailable', actor.call(harmless));
          await withActor(config, use, CONNECT_TIMEOUT_MS);
        } finally {
          await silent.close();
        }
      });

      it(`the driver of ${name} refuses calls while its server is stopped, and reconnects when it is restarted`, async function () {
        this.timeout(60_000);
        await withActor(backend.config, async (actor) => {
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

      it(`the driver of ${name} connects when its server starts later`, async function () {
        this.timeout(60_000);
        await backend.stop();
        const actor = start(backend.config);
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

    it(`the driver of ${name} refuses unknown operations`, async () => {
      await withActor(backend.config, async (actor) => {
        const message = await failsWith('invalid', actor.call(call({ operation: 'no-such-operation' })));
        expect(message).to.include('no-such-operation');
      });
    });

    it(`the driver of ${name} makes 64 calls at once`, async function () {
      this.timeout(60_000);
      await withActor(backend.config, async (actor) => {
        const answers = await Promise.all(Array.from({ length: 64 }, () => actor.call(harmless)));
        for (const answer of answers) suite.call.check(answer);
      });
    });

    it(`the driver of ${name} finishes calls in progress when it is drained, and refuses new ones`, async () => {
      const actor = start(backend.config);
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

/** A server that accepts connections and never answers. */
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
