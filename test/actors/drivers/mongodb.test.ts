import { type AddressInfo, connect, createServer } from 'node:net';
import { expect } from 'chai';
import { mongodbDriver } from '../../../src/actors/drivers/mongodb/driver.js';
import { MONGODB_PASSWORD, MONGODB_USER, startMongodbBackend } from '../../support/backends/mongodb.js';
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
import { descendantsOf } from '../../support/process-state.js';
import { driverSuite } from '../driver-suite.js';

driverSuite(mongodbDriver, {
  start: startMongodbBackend,
  wrongPassword: (config) => ({ ...config, password: 'wrong' }),
  at: (config, host, port) => ({ ...config, host, port }),
  call: {
    operation: 'find',
    args: { collection: 'nothing' },
    payload: '{}',
    check: (answer) => expect(String(answer.payload)).to.equal('[]'),
  },
});

describe('mongodb driver', () => {
  let backend: Awaited<ReturnType<typeof startMongodbBackend>>;
  let connection: TestConnection;
  let collections = 0;
  let collection: string;

  useDriver(mongodbDriver, startMongodbBackend, (...used) => {
    [backend, connection] = used;
  });

  beforeEach(() => {
    collections++;
    collection = `c${collections}`;
  });

  const text = async (operation: string, payload: unknown) => {
    const json = typeof payload === 'string' ? payload : JSON.stringify(payload);
    return (await connection.send(operation, { collection }, json)).payload.toString();
  };
  const json = async (operation: string, payload: unknown) =>
    JSON.parse(await text(operation, payload)) as unknown;
  const uri = (password: string, rest = 'test') =>
    `mongodb://${MONGODB_USER}:${encodeURIComponent(password)}@127.0.0.1:${backend.config.port}/${rest}`;

  it('inserts and finds documents in MongoDB', async () => {
    expect(await json('insert_one', { document: { _id: 1, a: 'x' } })).to.deep.equal({ inserted_id: 1 });
    const documents = [{ _id: 2, a: 'y' }, { a: 'z' }];
    const { inserted_ids } = (await json('insert_many', { documents })) as { inserted_ids: unknown[] };
    expect(inserted_ids[0]).to.equal(2);
    expect(inserted_ids[1])
      .to.have.property('$oid')
      .that.matches(/^[0-9a-f]{24}$/);
    expect(await json('find', { filter: { a: 'y' } })).to.deep.equal([{ _id: 2, a: 'y' }]);
    expect(
      await json('find', { sort: { a: -1 }, projection: { _id: 0, a: 1 }, skip: 1, limit: 1 }),
    ).to.deep.equal([{ a: 'y' }]);
    expect(await json('find_one', { filter: { _id: inserted_ids[1] } })).to.include({ a: 'z' });
    expect(await json('find_one', { filter: { a: 'none' } })).to.equal(null);
    expect(await json('find', '')).to.have.length(3);
    expect(await json('count', {})).to.equal(3);
    expect(await json('count', { filter: { a: { $gt: 'x' } } })).to.equal(2);
  });

  it('updates, replaces and deletes documents in MongoDB', async () => {
    await json('insert_many', { documents: [{ _id: 1 }, { _id: 2 }] });
    expect(await json('update_one', { filter: { _id: 1 }, update: { $set: { a: 1 } } })).to.deep.equal({
      matched: 1,
      modified: 1,
      upserted_id: null,
    });
    expect(await json('update_many', { filter: {}, update: { $set: { a: 1 } } })).to.deep.equal({
      matched: 2,
      modified: 1,
      upserted_id: null,
    });
    expect(
      await json('update_one', { filter: { _id: 3 }, update: { $set: { a: 3 } }, upsert: true }),
    ).to.deep.equal({ matched: 0, modified: 0, upserted_id: 3 });
    expect(await json('replace_one', { filter: { _id: 2 }, replacement: { b: 2 } })).to.deep.equal({
      matched: 1,
      modified: 1,
      upserted_id: null,
    });
    expect(await json('find_one', { filter: { _id: 2 } })).to.deep.equal({ _id: 2, b: 2 });
    const change = { filter: { _id: 1 }, update: { $inc: { a: 1 } } };
    expect(await json('find_one_and_update', change)).to.deep.equal({ _id: 1, a: 1 });
    expect(await json('find_one_and_update', { ...change, return: 'after' })).to.deep.equal({ _id: 1, a: 3 });
    expect(await json('find_one_and_update', { ...change, filter: { _id: 9 } })).to.equal(null);
    expect(await json('delete_one', { filter: { _id: 1 } })).to.deep.equal({ deleted: 1 });
    expect(await json('delete_many', { filter: {} })).to.deep.equal({ deleted: 2 });
  });

  it('aggregates documents and runs commands in MongoDB', async () => {
    await json('insert_many', {
      documents: [
        { k: 'a', n: 1 },
        { k: 'a', n: 2 },
        { k: 'b', n: 3 },
      ],
    });
    const pipeline = [{ $group: { _id: '$k', sum: { $sum: '$n' } } }, { $sort: { _id: 1 } }];
    expect(await json('aggregate', { pipeline })).to.deep.equal([
      { _id: 'a', sum: 3 },
      { _id: 'b', sum: 3 },
    ]);
    expect(await json('command', { command: { ping: 1 } })).to.include({ ok: 1 });
  });

  describe('values', () => {
    for (const [name, stored, answered] of [
      ['the smallest long', '-9223372036854775808'],
      ['the largest long', '9223372036854775807'],
      ['an integer beyond 2^53', '9007199254740993'],
      ['a long by name', '{"$numberLong":"9007199254740993"}', '9007199254740993'],
      ['a small long by name', '{"$numberLong":"5"}', '5'],
      ['an integer', '-2147483648'],
      ['a double', '1.5'],
      ['a double by name', '{"$numberDouble":"2.0"}', '2'],
      ['digits in a text', '"9007199254740993 \\"9007199254740993"'],
      ['a text', '"ü\\n\\u0001\\"\\\\"'],
      ['null', 'null'],
      ['true', 'true'],
      ['an object id', '{"$oid":"507f1f77bcf86cd799439011"}'],
      ['a date', '{"$date":"2026-01-31T23:59:59.123Z"}'],
      ['a date before 1970', '{"$date":{"$numberLong":"-1000"}}'],
      ['bytes', `{"$binary":{"base64":"${ALL_BYTES.toString('base64')}","subType":"00"}}`],
      ['no bytes', '{"$binary":{"base64":"","subType":"00"}}'],
      ['a regular expression', '{"$regularExpression":{"pattern":"^a","options":"i"}}'],
      ['a timestamp', '{"$timestamp":{"t":5,"i":6}}'],
      ['an array', '[1,{"a":[9007199254740993]}]'],
      ['a document that looks like a value', '{"_bsontype_":"Long","low":1,"high":2}'],
    ] as const) {
      it(`keeps ${name} in a document of MongoDB`, async () => {
        await text('insert_one', `{"document":{"_id":1,"v":${stored}}}`);
        expect(await text('find_one', {})).to.equal(`{"_id":1,"v":${answered ?? stored}}`);
      });
    }

    it('keeps explicit types of values in MongoDB', async () => {
      await text('insert_one', '{"document":{"_id":1,"v":{"$numberDouble":"2.0"}}}');
      await text('insert_one', '{"document":{"_id":2,"v":{"$numberLong":"2"}}}');
      await text('insert_one', '{"document":{"_id":3,"v":2}}');
      for (const [type, _id] of [
        ['double', 1],
        ['long', 2],
        ['int', 3],
      ] as const) {
        const found = await json('find', { filter: { v: { $type: type } }, projection: { v: 0 } });
        expect(found, type).to.deep.equal([{ _id }]);
      }
    });

    it('keeps a value of 2 MiB in MongoDB', async () => {
      const base64 = Buffer.alloc(2 * 1024 * 1024, ALL_BYTES).toString('base64');
      const document = { _id: 1, v: { $binary: { base64, subType: '00' } } };
      await json('insert_one', { document });
      expect(await json('find_one', {})).to.deep.equal(document);
    });
  });

  it('refuses a result of MongoDB that is too large', async () => {
    const v = 'x'.repeat(14 * 1024 * 1024);
    for (let _id = 0; _id < 5; _id++) await json('insert_one', { document: { _id, v } });
    await expectServiceError(text('find', {}), 'invalid', /67108864 is the most/);
    expect(await json('find', { projection: { v: 0 } })).to.have.length(5);
  });

  it('reports a refusal of MongoDB with its code', async () => {
    await json('insert_one', { document: { _id: 1 } });
    await expectServiceError(json('insert_one', { document: { _id: 1 } }), 'backend', /duplicate key.*11000/);
    const documents = [{ _id: 2 }, { _id: 1 }];
    await expectServiceError(json('insert_many', { documents }), 'backend', /duplicate key.*11000/);
    await expectServiceError(json('find', { filter: { $nope: 1 } }), 'backend', /\$nope.*\(BadValue 2\)/);
    await expectServiceError(json('command', { command: { nope: 1 } }), 'backend', /CommandNotFound 59/);
  });

  it('names the wrong member of a call to MongoDB', async () => {
    for (const [operation, payload, message] of [
      ['find', 'not JSON', /payload: must be Extended JSON/],
      ['find', '[]', /payload: must be an object/],
      ['find', '{"filter":5}', /payload\.filter: must be an object, not a number/],
      ['find', '{"filter":{"$oid":"507f1f77bcf86cd799439011"}}', /payload\.filter: must be a document/],
      ['find', '{"filter":{"a":{"$oid":"x"}}}', /payload: must be Extended JSON/],
      ['find', '{"query":{}}', /payload\.query: is not accepted; possible are filter, sort/],
      ['find', '{"limit":-1}', /payload\.limit: must be at least 0/],
      ['find', '{"skip":"1"}', /payload\.skip/],
      ['insert_one', '{}', /payload\.document: is required/],
      ['insert_one', '{"document":{"a":{"_bsontype":"Long"}}}', /version|_bsontype/i],
      ['insert_many', '{"documents":{}}', /payload\.documents: must be an array/],
      ['insert_many', '{"documents":[{},1]}', /payload\.documents\[1\]: must be a document/],
      ['update_one', '{"filter":{}}', /payload\.update: is required/],
      ['update_one', '{"filter":{},"update":{"a":1}}', /atomic operators/],
      [
        'update_one',
        '{"filter":{},"update":{"$set":{"a":1}},"upsert":1}',
        /payload\.upsert: must be a boolean/,
      ],
      ['replace_one', '{"filter":{},"replacement":{"$set":{"a":1}}}', /atomic operators/],
      ['delete_many', '{}', /payload\.filter: is required/],
      ['find_one_and_update', '{"filter":{},"update":{"$set":{"a":1}},"return":"new"}', /payload\.return/],
      ['aggregate', '{"pipeline":{}}', /payload\.pipeline: must be an array/],
      ['command', '{"command":{}}', /payload\.command: must not be empty/],
      ['command', '{"command":{"logout":1}}', /payload\.command: logout is refused/],
    ] as const) {
      await expectServiceError(text(operation, payload), 'invalid', message);
    }
    const nested = '['.repeat(100_000) + ']'.repeat(100_000);
    await expectServiceError(text('insert_one', `{"document":{"a":${nested}}}`), 'invalid', /payload/);
    for (const args of [undefined, null, {}, { collection: 1 }, { collection: '' }]) {
      await expectServiceError(connection.call(pendingCall('find', args)), 'invalid', /args\.collection/);
    }
  });

  it('aborts calls to MongoDB at their deadlines, and frees their connections', async () => {
    const documents = Array.from({ length: 2000 }, (_document, _id) => ({ _id }));
    await json('insert_many', { documents });
    for (let i = 0; i < 8; i++) {
      const abort = new AbortController();
      const finding = connection.send('find', { collection }, '{}', abort.signal);
      abort.abort();
      await expectServiceError(finding, 'deadline', /aborted/);
    }
    expect(await json('count', {})).to.equal(2000);
  });

  for (const [operation, payload] of [
    ['insert_one', '{"document":{"late":true}}'],
    ['insert_many', '{"documents":[{"late":true},{"late":true}]}'],
    ['update_one', '{"filter":{},"update":{"$set":{"late":true}},"upsert":true}'],
    ['update_many', '{"filter":{},"update":{"$set":{"late":true}},"upsert":true}'],
    ['replace_one', '{"filter":{},"replacement":{"late":true},"upsert":true}'],
    ['find_one_and_update', '{"filter":{},"update":{"$set":{"late":true}},"upsert":true}'],
    ['delete_one', '{"filter":{}}'],
    ['delete_many', '{"filter":{}}'],
    ['command', '{"command":{"ping":1}}'],
  ] as const) {
    it(`sends no ${operation} to MongoDB after its call has exceeded its deadline`, async () => {
      const send = (to: string, signal?: AbortSignal) =>
        connection.send(operation, { collection: to }, payload, signal);
      await text('insert_one', { document: { _id: 'kept' } });
      // All connections are opened first: opening one to a stopped server would last until the server counts as lost.
      await Promise.all(Array.from({ length: 16 * backend.config.pool_size }, () => json('count', {})));
      const server = serverPid(backend.config.port);
      process.kill(server, 'SIGSTOP');
      try {
        // One per connection; they have been sent, and their outcome is unknown.
        const abort = new AbortController();
        const sent = Array.from({ length: backend.config.pool_size }, () =>
          expectServiceError(send(`${collection}-other`, abort.signal), 'deadline', /aborted/),
        );
        // These wait for a connection.
        const waiting = sent.map(() =>
          expectServiceError(send(collection, abort.signal), 'deadline', /aborted/),
        );
        abort.abort();
        await Promise.all([...sent, ...waiting]);
      } finally {
        process.kill(server, 'SIGCONT');
      }
      // All connections are free again, and no call waits.
      await Promise.all(Array.from({ length: 2 * backend.config.pool_size }, () => json('count', {})));
      expect(await json('find', {})).to.deep.equal([{ _id: 'kept' }]);
    });
  }

  it('sends the time limit of each operation to MongoDB', async () => {
    const tap = await startTap(Number(backend.config.port));
    const tapped = await connectTo(mongodbDriver, { ...backend.config, port: tap.port });
    try {
      for (const [operation, payload] of [
        ['find', '{}'],
        ['find_one', '{}'],
        ['insert_one', '{"document":{}}'],
        ['insert_many', '{"documents":[{}]}'],
        ['update_one', '{"filter":{},"update":{"$set":{"a":1}}}'],
        ['update_many', '{"filter":{},"update":{"$set":{"a":1}}}'],
        ['replace_one', '{"filter":{},"replacement":{}}'],
        ['find_one_and_update', '{"filter":{},"update":{"$set":{"a":1}}}'],
        ['count', '{}'],
        ['aggregate', '{"pipeline":[]}'],
        ['delete_one', '{"filter":{}}'],
        ['delete_many', '{"filter":{}}'],
        ['command', '{"command":{"ping":1}}'],
      ] as const) {
        tap.sent.length = 0;
        await tapped.send(operation, { collection }, payload);
        expect(String(Buffer.concat(tap.sent)), operation).to.include('maxTimeMS');
      }
    } finally {
      await tapped.close();
      await tap.close();
    }
  });

  it('connects to MongoDB by URI without revealing it', async () => {
    const byUri = await connectTo(mongodbDriver, {
      uri: uri(MONGODB_PASSWORD, 'other?authSource=admin'),
      pool_size: 1,
    });
    try {
      expect(await byUri.test()).to.match(/^MongoDB \d/);
      await byUri.send('insert_one', { collection: 'by-uri' }, '{"document":{"_id":1}}');
      const command = '{"command":{"dbStats":1}}';
      const { payload } = await byUri.send('command', {}, command);
      expect(JSON.parse(payload.toString())).to.include({ db: 'other' });
    } finally {
      await byUri.close();
    }
    for (const [broken, message] of [
      [uri('se&cret-1', 'test?authSource=admin'), /did not accept the username or the password/],
      [uri('secret-1', 'test?unknown=1'), /uri: the option "unknown" is not allowed/],
      [
        uri('secret-1', 'test?tlsCAFile=/etc/passwd'),
        /"tlsCAFile" is not allowed; .* ssl_root_cert\. Allowed/,
      ],
      [
        uri('secret-1', 'test?w=1&TLSCertificateKeyFile=/etc/shadow'),
        /"TLSCertificateKeyFile" is not allowed/,
      ],
      [uri('secret-1', 'test?authMechanism=mongodb-oidc'), /this authMechanism is not allowed/],
      [`mongodb://u:x@secret-1?secret-1=y@127.0.0.1/`, /uri: an option is not allowed/],
      [`mongodb://${MONGODB_USER}:secret-1:@127.0.0.1/`, /uri: cannot be used/],
      [`mongodb://${MONGODB_USER}@x:secret-1@127.0.0.1/`, /uri: cannot be used/],
      [`http://${MONGODB_USER}:secret-1@127.0.0.1/`, /uri: cannot be used/],
    ] as const) {
      const said = await expectServiceError(
        connectTo(mongodbDriver, { uri: broken, pool_size: 1 }),
        'unavailable',
        message,
      );
      expect(said).not.to.match(/cret-1/);
    }
  });

  it('verifies the certificate of a server of MongoDB with TLS', async () => {
    const tls = await startMongodbBackend({ tlsHosts: ['localhost'] });
    try {
      const user = `${MONGODB_USER}:${encodeURIComponent(MONGODB_PASSWORD)}`;
      const at = (host: string) =>
        `mongodb://${user}@${host}:${tls.config.port}/test?tls=true&authSource=admin`;
      const trusting = { pool_size: 1, ssl_root_cert: tls.ca ?? '' };
      const connected = await connectTo(mongodbDriver, { uri: at('localhost'), ...trusting });
      await connected.close();
      await expectServiceError(
        connectTo(mongodbDriver, { uri: at('localhost'), pool_size: 1 }),
        'unavailable',
        /certificate/,
      );
      await expectServiceError(
        connectTo(mongodbDriver, { uri: at('127.0.0.1'), ...trusting }),
        'unavailable',
        /certificate/,
      );
    } finally {
      await tls.remove();
    }
  });

  it('reports a server of MongoDB that requires a user', async () => {
    const { username: _username, password: _password, ...config } = backend.config;
    await expectServiceError(
      connectTo(mongodbDriver, config),
      'unavailable',
      /requires a username and a password, and the config has none/,
    );
  });

  it('closes a connection to MongoDB at once while the server does not answer', async () => {
    const at = (port: number) => ({ ...backend.config, port });
    for (const operation of ['count', 'delete_many']) {
      const call = [operation, { collection: 'any' }, '{"filter":{}}'] as const;
      await expectToCloseAtOnce(mongodbDriver, Number(backend.config.port), at, call);
    }
  });

  it('reports a lost server of MongoDB once, and fails the next call', async () => {
    const other = await connectTo(mongodbDriver, backend.config);
    try {
      await backend.stop();
      await eventually(() => expect(other.lost).to.have.length(1));
      await expectServiceError(
        other.send('count', { collection: 'c' }, '{}'),
        'unavailable',
        /refused|closed/,
      );
    } finally {
      await other.close();
      await connection.close();
      await backend.start();
      connection = await connectTo(mongodbDriver, backend.config);
    }
  });
});

function serverPid(port: number | undefined): number {
  const server = descendantsOf(process.pid).find(({ command }) => command.includes(`127.0.0.1:${port} `));
  if (!server) throw new Error('The server does not run');
  return server.pid;
}

/** A proxy to a server of this machine that records what the client sends. */
async function startTap(port: number): Promise<{ port: number; sent: Buffer[]; close(): Promise<void> }> {
  const sent: Buffer[] = [];
  const tap = createServer((client) => {
    const server = connect(port, '127.0.0.1');
    client.on('data', (chunk) => sent.push(Buffer.from(chunk)));
    client.on('error', () => undefined).on('close', () => server.destroy());
    server.on('error', () => undefined).on('close', () => client.destroy());
    client.pipe(server).pipe(client);
  });
  await new Promise<void>((resolve) => tap.listen(0, '127.0.0.1', resolve));
  return {
    port: (tap.address() as AddressInfo).port,
    sent,
    close: () => new Promise((resolve) => tap.close(() => resolve())),
  };
}
