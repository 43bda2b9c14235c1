import { createHash, randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { expect } from 'chai';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import { actorHostToken } from '../../src/secrets/service-token.js';
import { startApi, type TestApi } from '../support/api.js';
import { type S3Backend, startS3Backend } from '../support/backends/s3.js';
import { type ObjectHost, startObjectHost } from '../support/backends/s3-host.js';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure, NO_ID, TIMESTAMP } from '../support/expect.js';
import { type FormPart, multipart } from '../support/form.js';
import { call, exchangeBytes } from '../support/http.js';

const LIMIT = 1_000_000;
/** Keys that some step on the way might change. */
const KEYS = [
  'plain.txt',
  'folder/sub folder/file name.txt',
  '100%.txt',
  '%2e%2e%2f',
  'a+b=c&d?e#f.txt',
  `quotes ' " \`.txt`,
  'ünïcödé/日本語/😀.txt',
  '007',
  'a//b',
  'back\\slash',
];

describe('object files', () => {
  let api: TestApi;
  let backend: S3Backend;
  let host: ObjectHost;
  let first: string;
  let second: string;
  let idle: string;
  let database: string;

  before(async () => {
    api = await startApi({
      config: {
        ...{ UPLOAD_LIMIT_BYTES: LIMIT, UPLOADS_OF_USER_LIMIT: 2, UPLOADS_SPOOLED_LIMIT_BYTES: LIMIT },
      },
    });
    backend = await startS3Backend(['files', 'other']);
    const create = async (name: string, type: string, config: object) =>
      expectData<{ id: string }>(await api.post('/api/services', { name, service_type: type, config }), 201)
        .id;
    const other = { ...backend.config, bucket: 'other' };
    first = await create('first', 'objstore', backend.config);
    second = await create('second', 'objstore', other);
    idle = await create('idle', 'objstore', backend.config);
    database = await create('database', 'sqlite', { path: 'x.db' });
    host = await startObjectHost({
      store: api.store,
      token: actorHostToken(createSecretBox('a key for the tests')),
      services: [
        [first, backend.config],
        [second, other],
      ],
    });
  });
  after(async () => {
    await host?.close();
    await backend?.remove();
    await api?.close();
  });

  const upload = (key: string, content: Buffer | string, query = '') =>
    send([file(content), field('key', key)], query);
  const send = (parts: readonly FormPart[], query = '') => {
    const { headers, body } = multipart(parts);
    return api.send('POST', `/api/minio/objects${query}`, { headers, body });
  };
  const pathOf = (key: string) => `/api/minio/objects/${key.split('/').map(encodeURIComponent).join('/')}`;
  const download = (key: string, headers: Record<string, string> = {}, method = 'GET') =>
    call(new URL(pathOf(key), api.url), { method, headers });
  const uploadsOnDisk = (count = 0, bytes = 0) =>
    eventually(async () => {
      const folder = join(api.config.DATA_DIR, 'uploads');
      const entries = await readdir(folder, { recursive: true, withFileTypes: true });
      const files = entries.filter((entry) => entry.isFile());
      expect(files).to.have.length(count);
      const sizes = files.map(({ name, parentPath }) => statSync(join(parentPath, name)).size);
      expect(sizes.reduce((sum, size) => sum + size, 0)).to.be.at.least(bytes);
    });

  describe('uploading', () => {
    it('stores an uploaded file under its key, whichever part of the form comes first', async () => {
      const content = randomBytes(300_000);
      const parts = [file(content), field('key', 'up/a.bin')];
      for (const ordered of [parts, parts.toReversed()]) {
        const response = await send(ordered);
        expect(response.status, JSON.stringify(response.body)).to.equal(200);
        expect(response.body).to.have.all.keys('key', 'bucket', 'size', 'message');
        expect(response.body).to.include({ key: 'up/a.bin', bucket: 'files', size: content.length });
        expect(content.equals((await download('up/a.bin')).body)).to.equal(true);
        await api.delete(pathOf('up/a.bin'));
      }
      await uploadsOnDisk();
    });

    it('stores an uploaded file that is empty', async () => {
      expect((await upload('up/empty.txt', '')).body).to.include({ size: 0 });
      const { status, headers, body } = await download('up/empty.txt');
      expect(status).to.equal(200);
      expect(headers['content-length']).to.equal('0');
      expect(body).to.have.length(0);
    });

    it('names what is wrong with the form of an upload', async () => {
      const key = field('key', 'a');
      for (const [parts, message] of [
        [[key], /^form\.file: is required/],
        [[file('x')], /^form\.key: is required/],
        [[file('x'), field('keys', 'a')], /^form\.keys: is not known; did you mean "key"/],
        [[file('x', 'fiel')], /^form\.fiel: is not known; did you mean "file"/],
        [[file('x'), file('y'), key], /more files than/],
        [[file('x'), key, key], /^form\.key: must be a string/],
        [[file('x', 'upload'), key], /^form\.upload: is no file of this form; it has file/],
        [[field('file', 'x'), key], /^form\.file: must be a file: a part with a file name/],
        [[file('x'), field('key', '')], /^form\.key: must not be empty/],
        [[file('x'), field('key', 'k'.repeat(1_025))], /^form\.key: must have at most 1024/],
        [[file('x'), field('key', 'ä'.repeat(600))], /^form\.key: must have at most 1024 bytes/],
        [[file('x'), field('key', '/a')], /^form\.key: must not begin with a slash/],
        [[file('x'), field('key', 'a/../b')], /^form\.key: must not have "\." or "\.\."/],
        [[file('x'), field('key', 'a\0')], /^form\.key: must not have NUL/],
        [[file('x'), field('key', 'k'.repeat(70_000))], /^form\.key: .*too long/],
        [[file('x'), field('key[a]', 'a')], /^form\.key\[a\]:/],
      ] as const) {
        expectFailure(await send(parts), 'invalid_input', message);
      }
      await uploadsOnDisk();
    });

    it('refuses an upload whose body is not a form', async () => {
      const post = (type: string | undefined, body: string) =>
        api.send('POST', '/api/minio/objects', {
          body,
          ...(type !== undefined && { headers: { 'content-type': type } }),
        });
      expectFailure(await post('application/json', '{}'), 'unsupported_media_type');
      expectFailure(await api.send('POST', '/api/minio/objects'), 'invalid_input', /^body: is required/);
      expectFailure(await post('multipart/form-data', 'x'), 'invalid_input', /cannot be read as a form/);
      expectFailure(
        await post('multipart/form-data; boundary=b', '--b\r\nx'),
        'invalid_input',
        /^body: cannot be read/,
      );
    });

    it('refuses an uploaded file over UPLOAD_LIMIT_BYTES, and stores nothing', async () => {
      expect((await upload('up/full', Buffer.alloc(LIMIT))).status).to.equal(200);
      expectFailure(await upload('up/large', Buffer.alloc(LIMIT + 1)), 'body_too_large', /1000000/);
      expectFailure(await upload('up/large', Buffer.alloc(3 * LIMIT)), 'body_too_large', /1000000/);
      expect((await download('up/large')).status).to.equal(404);
      await uploadsOnDisk();
    });

    /** Begins to upload `up/cut`, until that is one of so many files on the disk. */
    const begin = async (bytes: number, files: number) => {
      const { headers, body } = multipart([field('key', 'up/cut'), file(randomBytes(bytes))]);
      const outgoing = request(new URL('/api/minio/objects', api.url), {
        method: 'POST',
        headers: { ...headers, 'content-length': body.length },
      });
      outgoing.on('error', () => undefined);
      outgoing.write(body.subarray(0, -200));
      await uploadsOnDisk(files, bytes - 1_000);
      return outgoing;
    };

    it('stores nothing of an aborted upload', async () => {
      const outgoing = await begin(500_000, 1);
      outgoing.destroy();
      await uploadsOnDisk();
      expect((await download('up/cut')).status).to.equal(404);
    });

    it('refuses uploads of a user beyond their number, and beyond their share of the disk, until others have ended', async () => {
      const large = Buffer.alloc(LIMIT / 2);
      const first = await begin(400_000, 1);
      const tooLarge = await upload('up/second', large);
      expectFailure(tooLarge, 'too_many_uploads', /500000 bytes.*UPLOADS_SPOOLED_LIMIT_BYTES/);
      expect(tooLarge.status).to.equal(429);
      expect(tooLarge.headers).to.have.property('retry-after', '5');
      expect((await upload('up/second', 'small')).status).to.equal(200);
      const second = await begin(1_000, 2);
      expectFailure(
        await upload('up/third', 'small'),
        'too_many_uploads',
        /2 uploads.*UPLOADS_OF_USER_LIMIT/,
      );
      first.destroy();
      second.destroy();
      await uploadsOnDisk();
      expect((await upload('up/second', large)).status).to.equal(200);
    });
  });

  describe('downloading', () => {
    it('uploads, downloads and deletes objects with unusual keys unchanged', async () => {
      for (const key of KEYS) {
        const uploaded = await upload(`keys/${key}`, key);
        expect(uploaded.body, key).to.include({ key: `keys/${key}` });
        const { status, text } = await download(`keys/${key}`);
        expect(status, key).to.equal(200);
        expect(text).to.equal(key);
      }
      const listed = await api.get('/api/minio/objects?prefix=keys/');
      const { objects } = listed.body as { objects: { key: string }[] };
      // The server keeps objects as files.
      expect(objects.map(({ key }) => key)).to.have.members(
        KEYS.map((key) => `keys/${key.replace('//', '/')}`),
      );
      for (const key of KEYS) {
        const deleted = await api.delete(pathOf(`keys/${key}`));
        expect(deleted.body, key).to.deep.equal({ key: `keys/${key}`, bucket: 'files', deleted: true });
      }
    });

    it('describes the content of a downloaded object in headers', async () => {
      const content = randomBytes(10_000);
      for (const [key, type] of [
        ['down/a.png', 'image/png'],
        ['down/a.HTML', 'text/html'],
        ['down/a.svg', 'image/svg+xml'],
        ['down/a.unknown', 'application/octet-stream'],
        ['down/noextension', 'application/octet-stream'],
      ] as const) {
        await upload(key, content);
        const { status, headers, body } = await download(key);
        expect(status).to.equal(200);
        expect(headers).to.include({
          'content-type': type,
          'content-length': '10000',
          'accept-ranges': 'bytes',
          etag: `"${createHash('md5').update(content).digest('hex')}"`,
          // Uploaded pages must not act in the name of this API.
          'x-content-type-options': 'nosniff',
          'content-security-policy': "sandbox; frame-ancestors 'none'",
        });
        expect(Date.parse(String(headers['last-modified']))).to.be.closeTo(Date.now(), 60_000);
        expect(content.equals(body)).to.equal(true);
      }
    });

    it('answers HEAD of an object like GET, without the content', async () => {
      await upload('down/head.txt', '12345');
      const got = await download('down/head.txt');
      const { status, headers, body } = await download('down/head.txt', {}, 'HEAD');
      expect(status).to.equal(200);
      expect(body).to.have.length(0);
      for (const name of ['content-length', 'content-type', 'etag', 'last-modified', 'accept-ranges']) {
        expect(headers[name], name).to.equal(got.headers[name]);
      }
      expect((await download('down/missing', {}, 'HEAD')).status).to.equal(404);
    });

    it('sends ranges of an object', async () => {
      await upload('down/range.txt', '0123456789');
      for (const [range, status, text, sent] of [
        ['bytes=0-3', 206, '0123', 'bytes 0-3/10'],
        ['bytes=4-', 206, '456789', 'bytes 4-9/10'],
        ['bytes=-3', 206, '789', 'bytes 7-9/10'],
        ['bytes=-30', 206, '0123456789', 'bytes 0-9/10'],
        ['bytes=8-100', 206, '89', 'bytes 8-9/10'],
        ['bytes=10-', 416, '', 'bytes */10'],
        ['bytes=-0', 416, '', 'bytes */10'],
        ['bytes=5-2', 200, '0123456789', undefined],
        ['bytes=0-1,4-5', 200, '0123456789', undefined],
        ['lines=0-1', 200, '0123456789', undefined],
      ] as const) {
        const answer = await download('down/range.txt', { range });
        expect(answer.status, range).to.equal(status);
        expect(answer.text, range).to.equal(text);
        expect(answer.headers['content-range'], range).to.equal(sent);
        expect(answer.headers['content-length'], range).to.equal(String(text.length));
      }
    });

    it('sends ranges only of the version of an object that the client has', async () => {
      await upload('down/if-range.txt', '0123456789');
      const { headers } = await download('down/if-range.txt');
      const statusWith = async (ifRange: string | undefined) =>
        (await download('down/if-range.txt', { range: 'bytes=0-1', 'if-range': String(ifRange) })).status;
      expect(await statusWith(headers.etag)).to.equal(206);
      expect(await statusWith(headers['last-modified'])).to.equal(206);
      expect(await statusWith('"other"')).to.equal(200);
    });

    it('answers 304 when the client has the content of an object', async () => {
      await upload('down/cached.txt', 'cached');
      const etag = String((await download('down/cached.txt')).headers.etag);
      for (const value of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
        const { status, text, headers } = await download('down/cached.txt', { 'if-none-match': value });
        expect(status, value).to.equal(304);
        expect(text).to.equal('');
        expect(headers.etag).to.equal(etag);
      }
      expect((await download('down/cached.txt', { 'if-none-match': '"x"' })).text).to.equal('cached');
    });

    it('answers 404 to the download of an object that does not exist', async () => {
      expectFailure(await api.get(pathOf('down/missing')), 'not_found', /no object "down\/missing"/);
    });

    it('refuses keys of objects that lead out of the bucket', async () => {
      for (const [key, code, message] of [
        ['%2Fa', 'invalid_input', /^path\.key: must/],
        ['a%2f%2e%2e%2fb', 'malformed_request', /"\.\."/],
        ['..%2fa', 'malformed_request', /"\.\."/],
        ['a%00b', 'malformed_request', /NUL/],
      ] as const) {
        expectFailure(await api.get(`/api/minio/objects/${key}`), code, message);
        expectFailure(await api.delete(`/api/minio/objects/${key}`), code, message);
      }
      const request =
        'GET /api/minio/objects/a/../b HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
      expect(await exchangeBytes(api.url, request)).to.match(/^HTTP\/1\.1 400 /);
    });

    it('keeps the slash at the end of the key of an object', async () => {
      expect((await upload('down/folder/', '')).body).to.include({ key: 'down/folder/' });
      expect((await download('down/folder/')).status).to.equal(200);
      const deleted = await api.delete('/api/minio/objects/down/folder/');
      expect(deleted.body).to.include({ key: 'down/folder/', deleted: true });
    });
  });

  it('lists objects by prefix', async () => {
    await upload('list/b/2.txt', '22');
    await upload('list/a.txt', '1');
    const { status, body } = await api.get('/api/minio/objects?prefix=list/');
    expect(status).to.equal(200);
    const { bucket, prefix, objects } = body as {
      bucket: string;
      prefix: string;
      objects: { key: string; size: number; last_modified: string }[];
    };
    expect({ bucket, prefix }).to.deep.equal({ bucket: 'files', prefix: 'list/' });
    expect(objects.map(({ key, size }) => [key, size])).to.deep.equal([
      ['list/a.txt', 1],
      ['list/b/2.txt', 2],
    ]);
    for (const object of objects) {
      expect(object).to.have.all.keys('key', 'size', 'last_modified');
      expect(object.last_modified).to.match(TIMESTAMP);
    }
    expect((await api.get('/api/minio/objects?prefix=none/')).body).to.deep.equal({
      bucket,
      prefix: 'none/',
      objects: [],
    });
    expect((await api.get('/api/minio/objects')).body).to.include({ prefix: '' });
  });

  it('deletes an object, and reports when there was nothing to delete', async () => {
    await upload('gone.txt', 'x');
    const answer = { key: 'gone.txt', bucket: 'files' };
    expect((await api.delete(pathOf('gone.txt'))).body).to.deep.equal({ ...answer, deleted: true });
    expect((await api.delete(pathOf('gone.txt'))).body).to.deep.equal({ ...answer, deleted: false });
    expect((await download('gone.txt')).status).to.equal(404);
  });

  it('uses the object storage that the query names', async () => {
    expect((await upload('named.txt', 'x', `?service=${second}`)).body).to.include({ bucket: 'other' });
    expect((await api.get(`${pathOf('named.txt')}?service=${second}`)).body).to.equal('x');
    expectFailure(await api.get(`${pathOf('named.txt')}?service=${first}`), 'not_found');
    expect((await api.get(`/api/minio/objects?service=${second}`)).body).to.include({ bucket: 'other' });
    expect((await api.delete(`${pathOf('named.txt')}?service=${second}`)).body).to.include({ deleted: true });
  });

  it('refuses services for objects that are unknown, inactive or of another type', async () => {
    for (const [query, code, message] of [
      [`?service=${NO_ID}`, 'not_found', /service .* does not exist/],
      [`?service=${database}`, 'invalid_input', /^query\.service: "database" .* sqlite, not objstore/],
      [`?service=${idle}`, 'no_object_storage', /not active|no object storage/i],
      ['?service=x', 'invalid_input', /^query\.service: must be a UUID/],
    ] as const) {
      expectFailure(await api.get(`/api/minio/objects${query}`), code, message);
      expectFailure(await api.get(`${pathOf('a')}${query}`), code, message);
      expectFailure(await api.delete(`${pathOf('a')}${query}`), code, message);
      expectFailure(await upload('a', 'x', query), code, message);
    }
  });

  it('reports an unavailable object storage, and works after its restart', async function () {
    this.timeout(30_000);
    await upload('away.txt', 'x');
    await backend.stop();
    expectFailure(await api.get('/api/minio/objects'), 'backend_failed', /refused|closed/);
    expectFailure(await api.get(pathOf('away.txt')), 'backend_failed');
    expectFailure(await upload('away.txt', 'y'), 'backend_failed');
    await backend.start();
    await eventually(async () => expect((await download('away.txt')).text).to.equal('x'));
  });
});

describe('object files without an actor host', () => {
  let api: TestApi;
  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  it('refuses requests for objects without an actor host, and says to start one', async () => {
    for (const [method, path] of [
      ['GET', '/api/minio/objects'],
      ['GET', '/api/minio/objects/a/b%20c/d.txt'],
      ['DELETE', '/api/minio/objects/a/b%20c/d.txt'],
    ] as const) {
      const response = await api.send(method, path);
      expectFailure(response, 'no_actor_host', /start the `actor-host` process/);
      expect(response.body).to.have.all.keys('ok', 'error', 'code');
    }
    const { headers, body } = multipart([file('x'), field('key', 'a')]);
    expectFailure(await api.send('POST', '/api/minio/objects', { headers, body }), 'no_actor_host');
  });
});

function file(content: Buffer | string, name = 'file'): FormPart {
  return { name, filename: 'any name.bin', content };
}

function field(name: string, content: string): FormPart {
  return { name, content };
}
