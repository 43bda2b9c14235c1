import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { memcachedDriver } from '../../../src/actors/drivers/memcached/driver.js';
import { startMemcachedBackend } from '../../support/backends/memcached.js';
import { pendingCall } from '../../support/callable-connection.js';
import {
  ALL_BYTES,
  connectTo,
  expectServiceError,
  expectToCloseAtOnce,
  type TestConnection,
  useDriver,
} from '../../support/driver-calls.js';
import { eventually } from '../../support/eventually.js';
import { startProxy } from '../../support/tcp-proxy.js';
import { driverSuite } from '../driver-suite.js';

const DAY_S = 24 * 60 * 60;

driverSuite(memcachedDriver, {
  start: startMemcachedBackend,
  wrongPassword: 'the config of memcached has no credentials',
  at: (_config, host, port) => ({ host, port }),
  call: {
    operation: 'get',
    args: { key: 'missing' },
    check: (answer) => expect(answer.result).to.deep.equal({ found: false }),
  },
});

describe('memcached driver', () => {
  let backend: Awaited<ReturnType<typeof startMemcachedBackend>>;
  let connection: TestConnection;

  useDriver(memcachedDriver, startMemcachedBackend, (...used) => {
    [backend, connection] = used;
  });

  const get = async (key: string) => {
    const { result, payload } = await connection.send('get', { key });
    return (result as { found: boolean }).found ? payload.toString() : null;
  };
  const result = async (operation: string, args: unknown, payload = '') =>
    (await connection.send(operation, args, payload)).result;

  for (const [name, value] of [
    ['all-bytes', ALL_BYTES],
    ['nothing', Buffer.alloc(0)],
    ['almost-1-MiB', randomBytes(1000 * 1000)],
  ] as const) {
    it(`memcached keeps a value exactly: ${name}`, async () => {
      expect(await connection.send('set', { key: name }, value)).to.have.property('result', true);
      const answer = await connection.send('get', { key: name });
      expect(answer.result).to.deep.equal({ found: true });
      expect(answer.payload.equals(value)).to.equal(true);
    });
  }

  it('memcached adds missing keys, and replaces and deletes existing ones', async () => {
    expect(await result('replace', { key: 'k' }, '1')).to.equal(false);
    expect(await get('k')).to.equal(null);
    expect(await result('add', { key: 'k' }, '2')).to.equal(true);
    expect(await result('add', { key: 'k' }, '3')).to.equal(false);
    expect(await get('k')).to.equal('2');
    expect(await result('replace', { key: 'k' }, '4')).to.equal(true);
    expect(await get('k')).to.equal('4');
    expect(await result('delete', { key: 'k' })).to.equal(true);
    expect(await result('delete', { key: 'k' })).to.equal(false);
  });

  it('memcached counts with 64 bits', async () => {
    expect(await result('incr', { key: 'n', by: 1 })).to.equal(null);
    expect(await result('decr', { key: 'n', by: 1 })).to.equal(null);
    expect(await result('incr', { key: 'n', by: 5, initial: 10 })).to.equal(10n);
    expect(await result('incr', { key: 'n', by: 5, initial: 10 })).to.equal(15n);
    expect(await result('decr', { key: 'n', by: 20 })).to.equal(0n);
    expect(await result('incr', { key: 'n', by: Number.MAX_SAFE_INTEGER })).to.equal(9007199254740991n);
    expect(await result('incr', { key: 'n', by: Number.MAX_SAFE_INTEGER })).to.equal(18014398509481982n);
    await result('set', { key: 'n' }, '18446744073709551614');
    expect(await result('incr', { key: 'n', by: 1 })).to.equal(18446744073709551615n);
  });

  it('reports an increment in memcached of a value that is not a number', async () => {
    await result('set', { key: 'word' }, 'ten');
    await expectServiceError(result('incr', { key: 'word', by: 1 }), 'backend', /not a number/);
  });

  it('lets values in memcached expire, however long they may live', async () => {
    await result('set', { key: 'short', ttl_seconds: 1 }, 'x');
    expect(await get('short')).to.equal('x');
    for (const ttl_seconds of [30 * DAY_S, 30 * DAY_S + 1, 365 * DAY_S]) {
      await result('set', { key: 'long', ttl_seconds }, 'x');
      expect(await get('long'), `${ttl_seconds} s`).to.equal('x');
      expect(await result('incr', { key: `n${ttl_seconds}`, by: 1, initial: 1, ttl_seconds })).to.equal(1n);
      expect(await get(`n${ttl_seconds}`)).to.equal('1');
    }
    await eventually(async () => expect(await get('short')).to.equal(null));
  });

  it('reports a value that is too large for memcached, and keeps working', async () => {
    const large = randomBytes(1024 * 1024 + 1);
    await expectServiceError(connection.send('set', { key: 'large' }, large), 'backend', /too large.*-I/);
    expect(await result('set', { key: 'after' }, 'x')).to.equal(true);
  });

  it('stores values in memcached under keys of up to 250 bytes', async () => {
    for (const key of ['a', 'k'.repeat(250), 'ü'.repeat(125), '__proto__']) {
      await result('set', { key }, key);
      expect(await get(key)).to.equal(key);
    }
  });

  it('names the wrong argument of a call to memcached', async () => {
    for (const [operation, args, message] of [
      ['get', null, /args\.key: is required/],
      ['get', { key: 5 }, /args\.key: must be a string/],
      ['get', { key: '' }, /args\.key: must have 1 to 250 bytes/],
      ['get', { key: 'ü'.repeat(126) }, /args\.key: must have 1 to 250 bytes/],
      ['get', { key: 'a b' }, /args\.key: must not have spaces/],
      ['delete', { key: 'a\r\nflush_all' }, /args\.key: must not have spaces or control/],
      ['set', { key: 'a', ttl_seconds: 0 }, /args\.ttl_seconds: must be at least 1/],
      ['set', { key: 'a', ttl_seconds: 1.5 }, /args\.ttl_seconds/],
      ['add', { key: 'a', ttl_seconds: '1' }, /args\.ttl_seconds/],
      ['set', { key: 'a', ttl_seconds: 0x7fffffff }, /args\.ttl_seconds: must be at most/],
      ['incr', { key: 'a' }, /args\.by/],
      ['incr', { key: 'a', by: -1 }, /args\.by/],
      ['decr', { key: 'a', by: 2 ** 53 }, /args\.by/],
      ['decr', { key: 'a', by: 1, initial: 'x' }, /args\.initial/],
      ['incr', { key: 'a', by: 1, ttl_seconds: 5 }, /args\.ttl_seconds: .*needs "initial"/],
    ] as const) {
      await expectServiceError(connection.call(pendingCall(operation, args)), 'invalid', message);
    }
  });

  it('spreads keys over several servers of memcached, and finds them again', async () => {
    const other = await startMemcachedBackend();
    const servers = [backend, other].map(({ config }) => `127.0.0.1:${config.port}`);
    const both = await connectTo(memcachedDriver, { servers });
    const second = await connectTo(memcachedDriver, other.config);
    try {
      const keys = Array.from({ length: 40 }, (_key, i) => `spread-${i}`);
      await Promise.all(keys.map((key) => both.send('set', { key }, key)));
      const values = await Promise.all(keys.map((key) => both.send('get', { key })));
      expect(values.map(({ payload }) => payload.toString())).to.deep.equal(keys);
      const onSecond = await Promise.all(keys.map((key) => second.send('get', { key })));
      const found = onSecond.filter((answer) => (answer.result as { found: boolean }).found).length;
      expect(found).to.be.within(1, 39);
      expect(await both.test()).to.match(/^memcached 1\./);
    } finally {
      await both.close();
      await second.close();
      await other.remove();
    }
  });

  it('names the server of memcached that cannot be reached, or is not written as host:port', async () => {
    const gone = await startMemcachedBackend();
    await gone.remove();
    const servers = [`127.0.0.1:${backend.config.port}`, `127.0.0.1:${gone.config.port}`];
    const refused = new RegExp(`127\\.0\\.0\\.1:${gone.config.port} was refused`);
    await expectServiceError(connectTo(memcachedDriver, { servers }), 'unavailable', refused);
    await expectServiceError(
      connectTo(memcachedDriver, { servers: ['a:b:c'] }),
      'unavailable',
      /servers: "a:b:c" is not of the form/,
    );
  });

  it('closes a connection to memcached at once while the server does not answer', async () => {
    const at = (port: number) => ({ host: '127.0.0.1', port });
    await expectToCloseAtOnce(memcachedDriver, Number(backend.config.port), at, ['get', { key: 'a' }, '']);
  });

  it('fails calls in progress when the connection to memcached is lost', async () => {
    const proxy = await startProxy(`http://127.0.0.1:${backend.config.port}`);
    const through = await connectTo(memcachedDriver, {
      host: '127.0.0.1',
      port: Number(new URL(proxy.url).port),
    });
    try {
      const calls = ['a', 'b'].map((key) => through.send('get', { key }));
      const failing = calls.map((call) => expectServiceError(call, 'unavailable', /closed the connection/));
      await proxy.down();
      await Promise.all(failing);
      expect(through.lost).to.have.length(1);
    } finally {
      await through.close();
    }
  });

  it('reports a lost connection to memcached once, and fails the calls after it', async () => {
    const other = await startMemcachedBackend();
    const lone = await connectTo(memcachedDriver, other.config);
    try {
      await other.stop();
      await eventually(() => expect(lone.lost).to.have.length(1));
      await other.start();
      // Reconnecting is up to the actor.
      await expectServiceError(lone.send('get', { key: 'a' }), 'unavailable', /closed the connection/);
    } finally {
      await lone.close();
      await other.remove();
    }
    expect(lone.lost).to.have.length(1);
  });
});
