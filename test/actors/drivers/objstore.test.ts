import { createHash, randomBytes } from 'node:crypto';
import { readdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import type { Connection, ObjectFiles } from '../../../src/actors/driver.js';
import { objstoreDriver } from '../../../src/actors/drivers/objstore/driver.js';
import { readListPage } from '../../../src/actors/drivers/objstore/listing.js';
import { ServiceError } from '../../../src/actors/service-error.js';
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import { type S3Backend, startS3Backend } from '../../support/backends/s3.js';
import { type CallableConnection, openCallable, pendingCall } from '../../support/callable-connection.js';
import { expectServiceError } from '../../support/driver-calls.js';
import { eventually } from '../../support/eventually.js';
import { driverSuite } from '../driver-suite.js';

/** Keys that some layer might change. */
const KEYS = [
  'plain.txt',
  'folder/sub folder/file name.txt',
  ' leading and trailing ',
  '100%.txt',
  '%2e%2e%2f',
  'a+b=c&d?e#f.txt',
  `quotes ' " \`.txt`,
  '<tag>&amp;.xml',
  'ünïcödé/日本語/😀.txt',
  'e\u0301.txt',
  '007',
  '1e5',
  'true',
  'a(b)!*~.txt',
  'back\\slash',
  'line\nbreak',
  '...',
  'k'.repeat(200),
];

driverSuite(objstoreDriver, {
  start: () => startS3Backend(),
  wrongPassword: (config) => ({ ...config, secret_key: 'wrong' }),
  at: (config, host, port) => ({ ...config, endpoint: `${host}:${port}` }),
  call: {
    operation: 'head',
    args: { key: 'nothing' },
    check: ({ result }) => expect(result).to.deep.equal({ found: false }),
  },
});

describe('driver objstore: operations', () => {
  let backend: S3Backend;
  let connection: CallableConnection;
  let files: ObjectFiles;

  before(async () => {
    backend = await startS3Backend(['files', 'other']);
    connection = await connect(backend.config);
    files = filesOf(connection);
  });
  after(async () => {
    await connection?.close();
    await backend?.remove();
  });

  const call = (operation: string, args: unknown, payload: Buffer = Buffer.alloc(0)) =>
    connection.call(pendingCall(operation, args, payload));
  const put = (key: string, content: Buffer | string) => call('put', { key }, Buffer.from(content));
  const list = async (args: object) =>
    JSON.parse(String((await call('list', args)).payload)) as { key: string; size: number; etag: string }[];
  const keysAt = async (prefix: string) => (await list({ prefix })).map(({ key }) => key);

  it('stores, describes and returns the bytes of an object', async () => {
    const content = randomBytes(300_000);
    const etag = createHash('md5').update(content).digest('hex');
    const stored = await call('put', { key: 'a/b.bin', content_type: 'image/png' }, content);
    expect(stored.result).to.deep.equal({ etag, size: content.length });

    const { result, payload } = await call('get', { key: 'a/b.bin' });
    expect(content.equals(payload as Buffer)).to.equal(true);
    expect(result).to.include({ found: true, size: content.length, content_type: 'image/png', etag });
    const { last_modified } = result as { last_modified: Date };
    expect(Math.abs(Date.now() - last_modified.getTime())).to.be.below(60_000);
    expect((await call('head', { key: 'a/b.bin' })).result).to.deep.equal(result);
  });

  it('keeps an object without content, and replaces it', async () => {
    await put('empty', '');
    const empty = await call('get', { key: 'empty' });
    expect(empty.result).to.include({ found: true, size: 0, content_type: 'application/octet-stream' });
    expect(empty.payload).to.have.length(0);
    await put('empty', 'no more');
    expect(String((await call('get', { key: 'empty' })).payload)).to.equal('no more');
  });

  it('reports a missing object', async () => {
    expect((await call('get', { key: 'missing' })).result).to.deep.equal({ found: false });
    expect((await call('head', { key: 'missing' })).result).to.deep.equal({ found: false });
    expect((await call('delete', { key: 'missing' })).result).to.deep.equal({ deleted: false });
  });

  it('deletes an object', async () => {
    await put('gone', 'x');
    expect((await call('delete', { key: 'gone' })).result).to.deep.equal({ deleted: true });
    expect((await call('head', { key: 'gone' })).result).to.deep.equal({ found: false });
  });

  it('stores an object in parts, and shows it only when it is complete', async () => {
    const parts = [randomBytes(5 * 1024 ** 2), randomBytes(1000)];
    const key = 'parts/a b.bin';
    const begun = await call('begin_upload', { key, content_type: 'image/png' });
    const upload = { key, ...(begun.result as { upload_id: string }) };
    const etags: string[] = [];
    for (const [index, part] of parts.entries()) {
      const { result } = await call('upload_part', { ...upload, number: index + 1 }, part);
      etags.push((result as { etag: string }).etag);
    }
    expect((await call('head', { key })).result).to.deep.equal({ found: false });
    const completed = await call('complete_upload', { ...upload, etags });
    const { result, payload } = await call('get', { key });
    expect(Buffer.concat(parts).equals(payload as Buffer)).to.equal(true);
    expect(result).to.include({ content_type: 'image/png', ...(completed.result as object) });
    expect((await call('abort_upload', upload)).result).to.deep.equal({ aborted: false });
  });

  it('keeps nothing of an object whose upload in parts is aborted', async () => {
    const key = 'aborted';
    const { result } = await call('begin_upload', { key });
    const upload = { key, ...(result as { upload_id: string }) };
    await call('upload_part', { ...upload, number: 1 }, randomBytes(1000));
    expect((await call('abort_upload', upload)).result).to.deep.equal({ aborted: true });
    expect((await call('abort_upload', upload)).result).to.deep.equal({ aborted: false });
    await expectServiceError(
      call('upload_part', { ...upload, number: 2 }, Buffer.from('x')),
      'backend',
      /NoSuchUpload/,
    );
    expect((await call('head', { key })).result).to.deep.equal({ found: false });
  });

  it('returns ranges of an object, and fails when it was replaced or deleted meanwhile', async () => {
    const content = randomBytes(1000);
    const { result } = await call('put', { key: 'ranges' }, content);
    const { etag } = result as { etag: string };
    const range = (start: number, end: number, of = etag) =>
      call('get_range', { key: 'ranges', start, end, etag: of });
    for (const [start, end] of [
      [0, 0],
      [0, 999],
      [10, 99],
      [999, 999],
    ] as const) {
      expect(content.subarray(start, end + 1).equals((await range(start, end)).payload as Buffer)).to.equal(
        true,
      );
    }
    await expectServiceError(range(10, 9), 'invalid', /0 bytes/);
    await expectServiceError(range(0, 128 * 1024 ** 2), 'invalid', /must be 1 to/);
    await expectServiceError(range(990, 1000), 'backend', /shorter/);
    await expectServiceError(range(2000, 2001), 'backend', /InvalidRange/);
    await put('ranges', randomBytes(1000));
    await expectServiceError(range(0, 9), 'backend', /replaced/);
    await call('delete', { key: 'ranges' });
    await expectServiceError(range(0, 9), 'backend', /any more/);
  });

  it('keeps every key of an object unchanged', async () => {
    for (const key of KEYS) {
      const name = `keys/${key}`;
      await put(name, key);
      const { result, payload } = await call('get', { key: name });
      expect(result, name).to.include({ found: true });
      expect(String(payload)).to.equal(key);
    }
    expect(await keysAt('keys/')).to.have.members(KEYS.map((key) => `keys/${key}`));
    for (const key of KEYS) {
      expect(await keysAt(`keys/${key}`), key).to.include(`keys/${key}`);
      expect((await call('delete', { key: `keys/${key}` })).result, key).to.deep.equal({ deleted: true });
    }
    expect(await keysAt('keys/')).to.deep.equal([]);
  });

  it('refuses keys of objects that would be changed', async () => {
    for (const key of ['', '/a', '..', 'a/../b', './a', 'a/.', 'a\0b', '\ud800', 'ä'.repeat(513)]) {
      for (const operation of ['get', 'head', 'put', 'delete']) {
        await expectServiceError(call(operation, { key }), 'invalid', /^args\.key: must/);
      }
    }
  });

  it('names the wrong argument of a call to an object storage', async () => {
    await expectServiceError(call('get', {}), 'invalid', /^args\.key: is required/);
    await expectServiceError(call('get', { key: 7 }), 'invalid', /^args\.key: must be a string/);
    await expectServiceError(
      call('put', { key: 'a', content_type: 'a\r\nb' }),
      'invalid',
      /^args\.content_type/,
    );
    await expectServiceError(call('list', { limit: 0 }), 'invalid', /^args\.limit: must be at least 1/);
    await expectServiceError(call('copy', {}), 'invalid', /there is no operation "copy"/);
  });

  it('lists objects by prefix, over several pages, up to a limit', async () => {
    const names = Array.from({ length: 1_203 }, (_, i) => `many/${String(i).padStart(5, '0')}`);
    await writeFile(join(backend.bucketFolder, 'seed'), 'x');
    await call('put', { key: 'many/folder/inner' }, Buffer.from('12345'));
    await Promise.all(names.map((name) => writeFile(join(backend.bucketFolder, name), 'x')));
    const listed = await list({ prefix: 'many/' });
    expect(listed.map(({ key }) => key)).to.deep.equal([...names, 'many/folder/inner']);
    expect(listed.at(-1)).to.deep.include({ size: 5, etag: createHash('md5').update('12345').digest('hex') });
    expect(listed.at(-1))
      .to.have.property('last_modified')
      .that.matches(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    expect((await list({ prefix: 'many/', limit: 1_100 })).length).to.equal(1_100);
    expect((await list({ prefix: 'many/', limit: 3 })).map(({ key }) => key)).to.deep.equal(
      names.slice(0, 3),
    );
    expect(await list({ prefix: 'none/' })).to.deep.equal([]);
    expect((await files.list('many/')).length).to.equal(1_204);
  });

  it('refuses to return an object of more than 64 MiB, and keeps working', async () => {
    const size = 64 * 1024 * 1024 + 1;
    await files.write('large', Readable.from(chunks(size)), size, 'text/plain');
    await expectServiceError(call('get', { key: 'large' }), 'invalid', /67108865 bytes.*head or list/);
    expect((await call('head', { key: 'large' })).result).to.include({ size });
    expect((await call('delete', { key: 'large' })).result).to.deep.equal({ deleted: true });
  });

  it('retries a call to an object storage that has just closed a keep-alive connection', async () => {
    const [host = '', port] = backend.config.endpoint.split(':');
    let isClosing = false;
    const proxy = createServer((client) => {
      const server = connectTcp(Number(port), host);
      for (const [from, to] of [
        [client, server],
        [server, client],
      ] as const) {
        from.on('error', () => undefined);
        from.on('close', () => to.destroy());
      }
      client.on('data', (chunk: Buffer) => {
        if (isClosing) client.resetAndDestroy();
        else server.write(chunk);
        isClosing = false;
      });
      server.pipe(client);
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    const address = proxy.address() as AddressInfo;
    const through = await connect({ ...backend.config, endpoint: `127.0.0.1:${address.port}` });
    try {
      for (const operation of ['head', 'put', 'delete']) {
        isClosing = true;
        const args = { key: 'repeated' };
        await through.call(pendingCall(operation, args, 'x'));
        expect(isClosing, operation).to.equal(false);
      }
    } finally {
      await through.close();
      await new Promise((resolve) => proxy.close(resolve));
    }
  });

  it('answers the next call to an object storage after one was aborted', async () => {
    await put('aborted', randomBytes(1_000_000));
    const pending = pendingCall('get', { key: 'aborted' });
    const answer = connection.call(pending);
    pending.abort();
    await answer.then(
      () => undefined,
      (error: unknown) => expect(error).to.be.instanceOf(ServiceError),
    );
    expect((await call('head', { key: 'aborted' })).result).to.include({ found: true });
  });

  describe('files', () => {
    it('writes and reads objects of all sizes as streams', async () => {
      for (const size of [0, 1, 8 * 1024 * 1024, 8 * 1024 * 1024 + 1, 30_000_000]) {
        const content = randomBytes(size);
        const { etag } = await files.write('stream', slices(content), size, 'text/css');
        const info = await files.head('stream');
        expect(info).to.include({ key: 'stream', size, etag });
        expect(content.equals(await buffer(await files.read('stream')))).to.equal(true);
      }
      expect((await call('head', { key: 'stream' })).result).to.include({ content_type: 'text/css' });
      expect(await files.delete('stream')).to.equal(true);
      expect(await files.delete('stream')).to.equal(false);
      expect(await files.head('stream')).to.equal(undefined);
    });

    it('reads ranges of an object as streams', async () => {
      await put('range', '0123456789');
      const read = async (start: number, end: number) =>
        String(await buffer(await files.read('range', { start, end })));
      expect(await read(0, 0)).to.equal('0');
      expect(await read(3, 5)).to.equal('345');
      expect(await read(9, 9)).to.equal('9');
    });

    it('stores no object when its content is too short, too long or aborted', async () => {
      for (const size of [1_000, 20_000_000]) {
        const short = files.write('broken', Readable.from(chunks(size - 1)), size, 'text/plain');
        await expectServiceError(short, 'invalid', /ended after \d+ of \d+ bytes/);
        const long = files.write('broken', Readable.from(chunks(size + 1)), size, 'text/plain');
        await expectServiceError(long, 'invalid', /longer than/);
        const failing = Readable.from(failingAfter(size / 2));
        await expectServiceError(files.write('broken', failing, size, 'text/plain'), 'invalid', /lost/);
      }
      expect(await files.head('broken')).to.equal(undefined);
      expect(await files.list('broken')).to.deep.equal([]);
      expect(await uploadsUnderWay(backend)).to.deep.equal([]);
    });

    it('keeps concurrent uploads of the same object apart', async () => {
      const contents = [1, 2, 3].map(() => randomBytes(20_000_000));
      await Promise.all(
        contents.map((content) => files.write('same', slices(content), content.length, 'text/plain')),
      );
      const stored = await buffer(await files.read('same'));
      expect(contents.some((content) => content.equals(stored))).to.equal(true);
    });

    it('reads an object only if it was not replaced', async () => {
      await put('replaced', '0123456789');
      const { etag } = (await files.head('replaced')) ?? {};
      const read = () => files.read('replaced', { start: 2, end: 4 }, etag);
      expect(String(await buffer(await read()))).to.equal('234');
      await put('replaced', 'abcdefghij');
      await expectServiceError(read(), 'backend', /"replaced" was replaced meanwhile/);
    });

    it('reports an object that was deleted or became shorter', async () => {
      await put('shrunk', '0123');
      await expectServiceError(files.read('shrunk', { start: 0, end: 9 }), 'backend', /shorter/);
      await expectServiceError(files.read('missing'), 'backend', /no object "missing"/);
    });
  });

  describe('connecting', () => {
    it('reports which credential an object storage did not accept', async () => {
      const wrongKey = connect({ ...backend.config, access_key: 'nobody' });
      await expectServiceError(wrongKey, 'unavailable', /did not accept the access key/);
      const wrongSecret = connect({ ...backend.config, secret_key: 'secret-that-is-wrong' });
      const message = await expectServiceError(wrongSecret, 'unavailable', /did not accept the secret key/);
      expect(message).not.to.include('secret-that-is-wrong');
    });

    it('reports a missing bucket', async () => {
      const missing = connect({ ...backend.config, bucket: 'no-such-bucket' });
      await expectServiceError(missing, 'unavailable', /the bucket "no-such-bucket" does not exist/);
    });

    it('reports an invalid endpoint of an object storage', async () => {
      for (const endpoint of ['http://localhost:9000', 'localhost:9000/path', 'local host', 'host:99999']) {
        const wrong = connect({ ...backend.config, endpoint });
        await expectServiceError(wrong, 'unavailable', /is not host:port/);
      }
    });

    it('reports an object storage without TLS', async () => {
      const wrong = connect({ ...backend.config, use_ssl: true });
      await expectServiceError(wrong, 'unavailable', /does not speak TLS/);
    });

    it('reports the server and the bucket of an object storage', async () => {
      expect(await connection.test()).to.equal(`bucket "files" at ${backend.config.endpoint}`);
    });
  });
});

describe('driver objstore over TLS', () => {
  let backend: S3Backend;
  before(async () => {
    backend = await startS3Backend(['files'], { tls: true });
  });
  after(() => backend?.remove());

  it('stores and reads objects over TLS when the certificate is trusted', async () => {
    const connection = await connect(backend.config);
    const files = filesOf(connection);
    const content = randomBytes(9_000_000);
    await files.write('a', slices(content), content.length, 'text/plain');
    expect(content.equals(await buffer(await files.read('a')))).to.equal(true);
    await connection.call(pendingCall('put', { key: 'b' }, 'b'));
    await connection.close();
  });

  it('reports a certificate of an object storage that is not trusted', async () => {
    const { ssl_root_cert: _left, ...config } = backend.config;
    await expectServiceError(connect(config), 'unavailable', /certificate of .* was not accepted/);
  });
});

describe('pages of object lists', () => {
  it('reads a page of a list of objects whether or not the server encodes keys', () => {
    const page = (encoding: string, key: string) =>
      readListPage(
        `<ListBucketResult>${encoding}<IsTruncated>true</IsTruncated><NextContinuationToken>t&amp;1</NextContinuationToken>` +
          `<Contents><Key>${key}</Key><LastModified>2026-01-31T10:00:00.000Z</LastModified>` +
          '<ETag>&#34;abc&quot;</ETag><Size>5</Size></Contents></ListBucketResult>',
      );
    const expected = {
      size: 5,
      last_modified: new Date('2026-01-31T10:00:00.000Z'),
      etag: 'abc',
    };
    expect(page('<EncodingType>url</EncodingType>', 'a+b%2Bc%20d')).to.deep.equal({
      objects: [{ key: 'a b+c d', ...expected }],
      next: 't&1',
    });
    expect(page('', 'a+b%2B&lt;&#x1F600;')).to.deep.equal({
      objects: [{ key: 'a+b%2B<😀', ...expected }],
      next: 't&1',
    });
  });
});

function connect(config: ServiceConfig<'objstore'>): Promise<CallableConnection> {
  return openCallable(objstoreDriver, config);
}

function filesOf(connection: Connection): ObjectFiles {
  if (!connection.files) throw new Error('An object storage has files');
  return connection.files;
}

/** Files of multipart uploads in progress on the disk of the server. */
async function uploadsUnderWay({ bucketFolder }: S3Backend): Promise<string[]> {
  return eventually(async () => {
    const found = await readdir(bucketFolder, { recursive: true });
    const parts = found.filter((path) => /multipart\/.+/.test(path));
    expect(parts).to.deep.equal([]);
    return parts;
  });
}

function slices(content: Buffer): Readable {
  return Readable.from(
    (function* () {
      for (let at = 0; at < content.length; at += 65_000) yield content.subarray(at, at + 65_000);
    })(),
    { objectMode: false },
  );
}

function* chunks(size: number): Generator<Buffer> {
  const chunk = Buffer.alloc(1024 * 1024, 'x');
  for (let left = size; left > 0; left -= chunk.length) yield chunk.subarray(0, Math.min(left, chunk.length));
}

function* failingAfter(size: number): Generator<Buffer> {
  yield* chunks(size);
  throw new Error('the source was lost');
}
