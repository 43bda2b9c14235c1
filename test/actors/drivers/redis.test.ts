import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { redisDriver } from '../../../src/actors/drivers/redis/driver.js';
import { startRedisBackend } from '../../support/backends/redis.js';
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
import { driverSuite } from '../driver-suite.js';

driverSuite(redisDriver, {
  start: startRedisBackend,
  wrongPassword: (config) => ({ ...config, password: 'wrong' }),
  at: (config, host, port) => ({ ...config, host, port }),
  call: {
    operation: 'command',
    payload: JSON.stringify(['PING']),
    check: (answer) => expect(String(answer.payload)).to.equal('"PONG"'),
  },
});

describe('redis driver', () => {
  let backend: Awaited<ReturnType<typeof startRedisBackend>>;
  let connection: TestConnection;

  const start = async () => {
    const started = await startRedisBackend();
    return { ...started, config: { ...started.config, allow_scripts: true } };
  };
  useDriver(redisDriver, start, (...used) => {
    [backend, connection] = used;
  });

  const command = async (...parts: unknown[]) =>
    (await connection.send('command', {}, JSON.stringify(parts))).payload.toString();

  describe('get and set', () => {
    for (const [name, value] of [
      ['all bytes', ALL_BYTES],
      ['nothing', Buffer.alloc(0)],
      ['2 MiB', randomBytes(2 * 1024 * 1024)],
    ] as const) {
      it(`Redis keeps a value exactly: ${name}`, async () => {
        expect(await connection.send('set', { key: name }, value)).to.have.property('result', true);
        const answer = await connection.send('get', { key: name });
        expect(answer.result).to.deep.equal({ found: true });
        expect(answer.payload.equals(value)).to.equal(true);
      });
    }

    it('reports that a key is missing in Redis', async () => {
      expect((await connection.send('get', { key: 'missing' })).result).to.deep.equal({ found: false });
    });

    it('stores values in Redis under keys of any text', async () => {
      for (const key of ['', ' ', 'ключ\r\n', '__proto__', '\u0000']) {
        await connection.send('set', { key }, key);
        expect((await connection.send('get', { key })).payload.toString()).to.equal(key);
      }
    });

    it('stores a value in Redis only if the key is missing, or exists', async () => {
      const set = async (only_if: string, value: string) =>
        (await connection.send('set', { key: 'conditional', only_if }, value)).result;
      expect(await set('present', '1')).to.equal(false);
      expect(await set('absent', '2')).to.equal(true);
      expect(await set('absent', '3')).to.equal(false);
      expect(await set('present', '4')).to.equal(true);
      expect((await connection.send('get', { key: 'conditional' })).payload.toString()).to.equal('4');
    });

    it('lets values in Redis expire after ttl_ms', async () => {
      await connection.send('set', { key: 'long', ttl_ms: 100_000 }, 'x');
      expect(Number(await command('PTTL', 'long'))).to.be.within(90_000, 100_000);
      await connection.send('set', { key: 'short', ttl_ms: 1 }, 'x');
      await eventually(async () =>
        expect((await connection.send('get', { key: 'short' })).result).to.deep.equal({ found: false }),
      );
    });

    it('names the wrong argument of a get or set in Redis', async () => {
      for (const [operation, args, message] of [
        ['get', undefined, /args\.key/],
        ['get', null, /args\.key/],
        ['get', { key: 1 }, /args\.key: must be a string/],
        ['get', { key: ['a'] }, /args\.key/],
        ['set', {}, /args\.key/],
        ['set', { key: 'a', ttl_ms: 0 }, /args\.ttl_ms: must be at least 1/],
        ['set', { key: 'a', ttl_ms: 1.5 }, /args\.ttl_ms/],
        ['set', { key: 'a', ttl_ms: '5' }, /args\.ttl_ms/],
        ['set', { key: 'a', only_if: 'new' }, /args\.only_if: must be one of absent, present/],
      ] as const) {
        await expectServiceError(connection.call(pendingCall(operation, args)), 'invalid', message);
      }
    });

    it('reports the error of Redis for a key of another type', async () => {
      await command('RPUSH', 'list', 'a');
      await expectServiceError(connection.send('get', { key: 'list' }), 'backend', /WRONGTYPE/);
    });
  });

  describe('command', () => {
    it('returns all kinds of replies of Redis', async () => {
      expect(await command('PING')).to.equal('"PONG"');
      expect(await command('get', 'no such key')).to.equal('null');
      expect(await command('RPUSH', 'replies', 'a', '', 'ü')).to.equal('3');
      expect(await command('LRANGE', 'replies', 0, -1)).to.equal('["a","","ü"]');
      expect(await command('LRANGE', 'no list', 0, -1)).to.equal('[]');
      expect(await command('EVAL', "return {1, {'x', {false, -2}}, redis.status_reply('FINE')}", 0)).to.equal(
        '[1,["x",[null,-2]],"FINE"]',
      );
    });

    it('does not transform the reply of Redis to HGETALL', async () => {
      await command('HSET', 'hash', 'field', 'value');
      expect(await command('hgetall', 'hash')).to.equal('["field","value"]');
    });

    it('keeps bytes that are not text in a command of Redis', async () => {
      const base64 = ALL_BYTES.toString('base64');
      expect(await command('SET', { base64 }, { base64 })).to.equal('"OK"');
      expect(JSON.parse(await command('GET', { base64 }))).to.deep.equal({ base64 });
      const inArray = JSON.parse(await command('MGET', { base64 }, 'missing')) as unknown;
      expect(inArray).to.deep.equal([{ base64 }, null]);
    });

    it('sends integers of 64 bits to Redis and returns them exactly', async () => {
      for (const digits of ['9007199254740993', '9223372036854775807', '-9223372036854775808', '-1', '0']) {
        await command('SET', 'counter', '0');
        const payload = `["INCRBY", "counter", ${digits}]`;
        expect((await connection.send('command', {}, payload)).payload.toString()).to.equal(digits);
        expect(await command('GET', 'counter')).to.equal(`"${digits}"`);
      }
      expect(await command('ECHO', '12345678901234567890')).to.equal('"12345678901234567890"');
      expect(await command('ECHO', 1.5)).to.equal('"1.5"');
    });

    it('reports a refusal of a command by Redis', async () => {
      await expectServiceError(command('NOSUCHCOMMAND'), 'backend', /unknown command/);
      const script = "return {1, redis.error_reply('MYERR broken')}";
      await expectServiceError(command('EVAL', script, 0), 'backend', /within the reply: MYERR broken/);
    });

    it('names the wrong member of a command of Redis', async () => {
      for (const [payload, message] of [
        ['', /payload: must be JSON/],
        ['{}', /payload: must be an array/],
        ['[]', /payload\[0\]: must be the name/],
        ['[1]', /payload\[0\]/],
        ['["ECHO", null]', /payload\[1\]: must be a string/],
        ['["ECHO", true]', /payload\[1\]/],
        ['["ECHO", ["a"]]', /payload\[1\]/],
        ['["ECHO", {"base64": 1}]', /payload\[1\]/],
        ['["ECHO", {"base64": "a"}]', /payload\[1\]\.base64: must be base64/],
        ['["ECHO", {"base64": "!!!!"}]', /payload\[1\]\.base64/],
      ] as const) {
        await expectServiceError(connection.send('command', {}, payload), 'invalid', message);
      }
    });

    it('refuses commands that would change or block a connection to Redis, and names alternatives', async () => {
      for (const [parts, message] of [
        [['select', 1], /SELECT is refused: the database is the one in the config/],
        [['AUTH', 'x'], /in the config/],
        [['HELLO', 3], /in the config/],
        [['QUIT'], /shared/],
        [['RESET'], /shared/],
        [['Multi'], /EVAL/],
        [['EXEC'], /EVAL/],
        [['WATCH', 'a'], /EVAL/],
        [['SUBSCRIBE', 'a'], /stream/],
        [['MONITOR'], /stream/],
        [['BLPOP', 'a', 0], /use LPOP/],
        [['BZPOPMIN', 'a', 0], /use ZPOPMIN/],
        [['WAIT', 1, 0], /hold up/],
        [['SHUTDOWN'], /those who run the server/],
        [['DEBUG', 'SLEEP', 1], /those who run the server/],
        [['CLIENT', 'REPLY', 'OFF'], /possible are CLIENT ID/],
        [['client', { base64: Buffer.from('kill').toString('base64') }], /possible are/],
        [['SCRIPT', 'debug', 'YES'], /shared/],
        [['MOVE', 'key', 1], /the database is the one in the config/],
        [['COPY', 'db', 'db', 'REPLACE', 'db', 1], /the database is the one in the config/],
        [['FLUSHALL'], /use FLUSHDB/],
        [['XREAD', 'COUNT', 1, 'block', 0, 'STREAMS', 'a', '$'], /leave BLOCK out/],
        [['XREADGROUP', 'GROUP', 'STREAMS', 'c', 'BLOCK', 0, 'STREAMS', 'a', '>'], /leave BLOCK out/],
      ] as const) {
        await expectServiceError(command(...parts), 'invalid', message);
      }
      expect(await command('CLIENT', 'ID')).to.match(/^\d+$/);
      expect(await command('COPY', 'db', 'db2', 'REPLACE')).to.equal('0');
      expect(await command('XREAD', 'STREAMS', 'BLOCK', '0')).to.equal('null');
    });
  });

  it('refuses commands that administer the server of Redis', async () => {
    for (const parts of [
      ['CONFIG', 'GET', 'requirepass'],
      ['config', 'set', 'requirepass', ''],
      ['MODULE', 'LIST'],
      ['ACL', 'LIST'],
      ['SAVE'],
      ['BGSAVE'],
      ['BGREWRITEAOF'],
      ['CLUSTER', 'INFO'],
      ['LATENCY', 'LATEST'],
      ['SLOWLOG', 'GET'],
      ['SWAPDB', 0, 1],
      ['FAILOVER'],
      ['REPLICAOF', 'NO', 'ONE'],
      ['SLAVEOF', 'NO', 'ONE'],
      ['MIGRATE', 'host', 6379, 'key', 0, 1000],
      ['PFDEBUG', 'GETREG', 'key'],
    ]) {
      await expectServiceError(
        command(...parts),
        'invalid',
        /is refused: it is for those who run the server/,
      );
    }
    // The server itself refuses these commands in scripts.
    const script = "return redis.call('CONFIG', 'GET', 'requirepass')";
    await expectServiceError(command('EVAL', script, 0), 'backend', /not allowed from script/);
  });

  it('refuses scripts and functions of Redis, unless the config allows them', async () => {
    const { allow_scripts: _allowed, ...config } = backend.config;
    for (const closed of [config, { ...config, allow_scripts: false }]) {
      const other = await connectTo(redisDriver, closed);
      try {
        for (const parts of [
          ['EVAL', "return redis.call('SELECT', '1')", 0],
          ['eval_ro', 'return 1', 0],
          ['EVALSHA', 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db', 0],
          ['EVALSHA_RO', 'e0e1f9fabfc9d4800c877a703b823ac0578ff8db', 0],
          ['SCRIPT', 'LOAD', 'return 1'],
          ['FCALL', 'name', 0],
          ['FCALL_RO', 'name', 0],
          ['FUNCTION', 'LIST'],
        ]) {
          const refused = other.send('command', {}, JSON.stringify(parts));
          await expectServiceError(
            refused,
            'invalid',
            /is refused: scripts and functions are off, .*allow_scripts/,
          );
        }
      } finally {
        await other.close();
      }
    }
    expect(await command('EVAL', 'return 1', 0)).to.equal('1');
  });

  it('uses all connections of the pool to Redis', async () => {
    const ids = await Promise.all(Array.from({ length: 8 }, () => command('CLIENT', 'ID')));
    expect(new Set(ids).size).to.equal(backend.config.pool_size);
  });

  it('uses the database of Redis that the config names', async () => {
    const other = await connectTo(redisDriver, { ...backend.config, database: 3 });
    try {
      await other.send('set', { key: 'only in 3' }, 'x');
      expect((await connection.send('get', { key: 'only in 3' })).result).to.deep.equal({ found: false });
      expect((await other.send('get', { key: 'only in 3' })).result).to.deep.equal({ found: true });
    } finally {
      await other.close();
    }
  });

  it('reports a missing database of Redis', async () => {
    const config = { ...backend.config, database: 99 };
    await expectServiceError(connectTo(redisDriver, config), 'unavailable', /has no database 99/);
  });

  it('reports that Redis requires a password', async () => {
    const { password: _password, ...config } = backend.config;
    await expectServiceError(connectTo(redisDriver, config), 'unavailable', /requires a password/);
  });

  it('reports that Redis has no password', async () => {
    const open = await startRedisBackend({ password: null });
    try {
      const config = { ...open.config, password: 'superfluous' };
      const message = await expectServiceError(
        connectTo(redisDriver, config),
        'unavailable',
        /has no password/,
      );
      expect(message).not.to.contain('superfluous');
    } finally {
      await open.remove();
    }
  });

  it('refuses a value of Redis that is too large', async () => {
    await command('SETRANGE', 'huge', 64 * 1024 * 1024, 'x');
    await expectServiceError(connection.send('get', { key: 'huge' }), 'invalid', /at least 67108865 bytes/);
    await command('DEL', 'huge');
  });

  it('closes a connection to Redis at once while the server does not answer', async () => {
    const at = (port: number) => ({ ...backend.config, port });
    await expectToCloseAtOnce(redisDriver, backend.config.port, at, ['get', { key: 'a' }, '']);
  });

  it('reports a lost connection to Redis once, and fails the calls in progress and after it', async () => {
    const other = await connectTo(redisDriver, backend.config);
    try {
      const endless = other.send('command', {}, '["EVAL", "while true do end", "0"]');
      const failing = expectServiceError(endless, 'unavailable', /closed the connection/);
      await backend.stop();
      await failing;
      await eventually(() => expect(other.lost).to.have.length(1));
      await expectServiceError(other.send('get', { key: 'a' }), 'unavailable', /closed the connection/);
    } finally {
      await other.close();
      await backend.start();
      await connection.close();
      connection = await connectTo(redisDriver, backend.config);
    }
  });
});

describe('redis driver over TLS', () => {
  let backend: Awaited<ReturnType<typeof startRedisBackend>>;

  before(async () => {
    backend = await startRedisBackend({ tlsHosts: ['localhost'] });
  });

  after(() => backend?.remove());

  it('connects to Redis over TLS when the authority is trusted and the name matches', async () => {
    const connection = await connectTo(redisDriver, { ...backend.config, host: 'localhost' });
    try {
      expect(await connection.test()).to.match(/^Redis \d+\.\d+/);
    } finally {
      await connection.close();
    }
  });

  it('refuses a certificate of Redis for another name', async () => {
    await expectServiceError(
      connectTo(redisDriver, backend.config),
      'unavailable',
      /certificate of 127\.0\.0\.1:\d+ was not accepted: it was issued for another host name/,
    );
  });

  it('refuses a certificate of Redis from an unknown authority', async () => {
    const { ssl_root_cert: _certificate, ...config } = { ...backend.config, host: 'localhost' };
    await expectServiceError(
      connectTo(redisDriver, config),
      'unavailable',
      /certificate .* was not accepted/,
    );
  });
});
