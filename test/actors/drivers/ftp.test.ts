import { randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, readdir, readFile, symlink, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect } from 'chai';
import { ftpDriver } from '../../../src/actors/drivers/ftp/driver.js';
import { parseServiceConfig, type ServiceConfig } from '../../../src/model/service-configs.js';
import { type FtpBackend, startFtpBackend } from '../../support/backends/ftp.js';
import { type SftpBackend, startOpenSsh, startRcloneSftp } from '../../support/backends/sftp.js';
import { connectTo, expectServiceError, type TestConnection } from '../../support/driver-calls.js';
import { eventually } from '../../support/eventually.js';
import { driverSuite } from '../driver-suite.js';

type Config = ServiceConfig<'ftp'>;

interface Variant {
  readonly title: string;
  readonly start: () => Promise<FtpBackend>;
  /** The same with wrong credentials. */
  readonly refused: (config: Config) => Config;
  /** Whether lists include modification times. */
  readonly hasTimes: boolean;
}

const wrongPassword = (config: Config): Config => ({ ...config, password: 'wrong' });

const VARIANTS: readonly Variant[] = [
  { title: 'ftp', start: () => startFtpBackend(), refused: wrongPassword, hasTimes: false },
  { title: 'ftps', start: () => startFtpBackend({ tls: true }), refused: wrongPassword, hasTimes: false },
  { title: 'sftp with a password', start: startRcloneSftp, refused: wrongPassword, hasTimes: true },
  {
    title: 'sftp with a key',
    start: startOpenSsh,
    refused: (config) => ({ ...config, username: 'somebody-else' }),
    hasTimes: true,
  },
];

for (const variant of VARIANTS) {
  driverSuite(ftpDriver, {
    title: variant.title,
    start: variant.start,
    wrongPassword: variant.refused,
    at: (config, host, port) => ({ ...config, host, port }),
    call: {
      operation: 'get',
      args: { path: 'nothing' },
      check: ({ result }) => expect(result).to.deep.equal({ found: false }),
    },
  });
  operations(variant);
}

function operations({ title, start, hasTimes }: Variant): void {
  describe(`driver ${title}: operations`, function () {
    this.timeout(30_000);
    let backend: FtpBackend;
    let connection: TestConnection;
    before(async () => {
      backend = await start();
      connection = await connectTo(ftpDriver, backend.config);
    });
    after(async () => {
      await connection?.close();
      await backend?.remove();
    });

    const put = (path: string, content: Buffer | string) => connection.send('put', { path }, content);
    const get = async (path: string) => {
      const { result, payload } = await connection.send('get', { path });
      return (result as { found: boolean }).found ? payload : undefined;
    };
    const list = async (path: string) =>
      JSON.parse(String((await connection.send('list', { path })).payload)) as {
        name: string;
        kind: string;
        size: number;
        modified: string | null;
      }[];
    const onDisk = (path: string) => join(backend.folder, path);

    it(`stores and returns files of all sizes over ${title}`, async () => {
      for (const size of [0, 1, 100_000, 5_000_000]) {
        const content = randomBytes(size);
        expect((await put('a.bin', content)).result).to.deep.equal({ size });
        expect(content.equals(await readFile(onDisk('a.bin')))).to.equal(true);
        const got = await get('a.bin');
        expect(got && content.equals(got), String(size)).to.equal(true);
      }
    });

    it(`creates missing folders over ${title}`, async () => {
      await put('one/two/three/file.txt', 'deep');
      expect(await readFile(onDisk('one/two/three/file.txt'), 'utf8')).to.equal('deep');
      await put('one/two/other.txt', 'less deep');
      expect(String(await get('one/two/other.txt'))).to.equal('less deep');
    });

    it(`leaves no temporary file over ${title}, also when an upload fails`, async () => {
      await put('tidy/file.txt', 'first');
      await put('tidy/file.txt', 'second');
      expect(await readFile(onDisk('tidy/file.txt'), 'utf8')).to.equal('second');
      await mkdir(onDisk('tidy/taken/inner'), { recursive: true });
      // A folder has the name of the file.
      await expectServiceError(put('tidy/taken', 'x'), 'backend', /./);
      expect((await readdir(onDisk('tidy'))).sort()).to.deep.equal(['file.txt', 'taken']);
      expect(await readdir(onDisk('tidy/taken'))).to.deep.equal(['inner']);
    });

    it(`keeps the names of files as they are over ${title}`, async () => {
      const names = [
        'with space.txt',
        'ünï日本😀.txt',
        '100%+&#.txt',
        '[a]*?.txt',
        '-rf',
        'it\'s "it".txt',
        '~',
      ];
      for (const name of names) {
        await put(`names/${name}`, name);
        expect(String(await get(`names/${name}`)), name).to.equal(name);
      }
      expect((await readdir(onDisk('names'))).sort()).to.deep.equal([...names].sort());
      expect((await list('names')).map(({ name }) => name).sort()).to.deep.equal([...names].sort());
      for (const name of names) {
        const { result } = await connection.send('delete', { path: `names/${name}` });
        expect(result, name).to.deep.equal({ deleted: true });
      }
      expect(await list('names')).to.deep.equal([]);
    });

    it(`lists files and folders over ${title}`, async () => {
      await mkdir(onDisk('listed/folder'), { recursive: true });
      await writeFile(onDisk('listed/file.txt'), '12345');
      const entries = await list('listed');
      expect(entries.map(({ name, kind }) => [name, kind]).sort()).to.deep.equal([
        ['file.txt', 'file'],
        ['folder', 'folder'],
      ]);
      const file = entries.find(({ kind }) => kind === 'file');
      expect(file).to.have.all.keys('name', 'kind', 'size', 'modified').and.include({ size: 5 });
      if (hasTimes) expect(Date.parse(String(file?.modified))).to.be.closeTo(Date.now(), 60_000);
      else expect(file?.modified).to.equal(null);
      for (const same of ['listed/', './listed', 'listed//.']) expect((await list(same)).length).to.equal(2);
      for (const root of ['', '.']) expect((await list(root)).map(({ name }) => name)).to.include('listed');
    });

    it(`reports a missing file over ${title}`, async () => {
      expect(await get('missing')).to.equal(undefined);
      expect(await get('missing/missing')).to.equal(undefined);
      expect((await connection.send('delete', { path: 'missing' })).result).to.deep.equal({ deleted: false });
      expect((await connection.send('delete', { path: 'no/such/file' })).result).to.deep.equal({
        deleted: false,
      });
      await expectServiceError(list('missing'), 'backend', /no folder "missing"/);
    });

    it(`refuses to get or delete a folder as a file over ${title}`, async () => {
      await mkdir(onDisk('folder/inner'), { recursive: true });
      await expectServiceError(connection.send('get', { path: 'folder' }), 'backend', /./);
      await expectServiceError(connection.send('delete', { path: 'folder' }), 'backend', /./);
      expect(await readdir(onDisk('folder'))).to.deep.equal(['inner']);
    });

    it(`refuses paths outside of base_path over ${title}`, async () => {
      await writeFile(join(backend.folder, '..', 'outside.txt'), 'secret');
      for (const path of [
        '../outside.txt',
        'a/../../outside.txt',
        '..',
        '..\\outside.txt',
        '/etc/passwd',
        '//etc/passwd',
      ]) {
        for (const operation of ['get', 'put', 'delete', 'list']) {
          await expectServiceError(connection.send(operation, { path }), 'invalid', /^args\.path: must not/);
        }
      }
      expect(await readFile(join(backend.folder, '..', 'outside.txt'), 'utf8')).to.equal('secret');
    });

    it(`refuses invalid paths over ${title}`, async () => {
      for (const path of ['a\0b', 'a\r\nDELE b', 'a\nb', '\ud800', 'a'.repeat(5_000)]) {
        await expectServiceError(connection.send('get', { path }), 'invalid', /^args\.path: must/);
      }
      for (const path of ['', '.', './/']) {
        await expectServiceError(
          connection.send('put', { path }),
          'invalid',
          /^args\.path: must name a file/,
        );
      }
      await expectServiceError(connection.send('get', {}), 'invalid', /^args\.path: is required/);
      await expectServiceError(
        connection.send('get', { path: 1 }),
        'invalid',
        /^args\.path: must be a string/,
      );
      await expectServiceError(connection.send('copy', {}), 'invalid', /no operation "copy"/);
    });

    it(`refuses to return a file of more than 64 MiB over ${title}, and keeps working`, async () => {
      await writeFile(onDisk('large.bin'), '');
      await truncate(onDisk('large.bin'), 64 * 1024 * 1024 + 1);
      await expectServiceError(connection.send('get', { path: 'large.bin' }), 'invalid', /larger than/);
      await put('after.txt', 'fine');
      expect(String(await get('after.txt'))).to.equal('fine');
    });

    it(`aborts an upload over ${title} at its deadline, and removes its temporary file`, async () => {
      await put('aborted/file.bin', 'previous');
      const abort = new AbortController();
      const content = Buffer.alloc(60 * 1024 * 1024);
      const upload = expectServiceError(
        connection.send('put', { path: 'aborted/file.bin' }, content, abort.signal),
        'unavailable',
        /./,
      );
      // The server creates the temporary file before it lets this process send. As this looks for it in every turn of
      // the event loop, most of the content cannot have been sent by then, however fast the server is.
      let hasEnded = false;
      void upload.catch(() => undefined).finally(() => (hasEnded = true));
      while (!hasEnded && readdirSync(onDisk('aborted')).length === 1) await nextTurn();
      abort.abort();
      await upload;
      await eventually(async () => expect(await readdir(onDisk('aborted'))).to.deep.equal(['file.bin']));
      expect(String(await get('aborted/file.bin'))).to.equal('previous');
      await put('aborted/file.bin', 'next');
      expect(String(await get('aborted/file.bin'))).to.equal('next');
    });

    it(`stores and returns several files at once over ${title}`, async () => {
      const contents = Array.from({ length: 4 }, () => randomBytes(300_000));
      await Promise.all(contents.map((content, i) => put(`many/${i}`, content)));
      const got = await Promise.all(contents.map((_content, i) => get(`many/${i}`)));
      expect(contents.every((content, i) => got[i]?.equals(content))).to.equal(true);
    });

    it(`reports that base_path is missing over ${title}`, async () => {
      const wrong = { ...backend.config, base_path: '/no/such/folder' };
      await expectServiceError(
        connectTo(ftpDriver, wrong),
        'unavailable',
        /no folder "\/no\/such\/folder" \(base_path\)/,
      );
    });
  });
}

describe('driver ftp: base_path', () => {
  it('base_path of an ftp service may be relative to where the user starts', async () => {
    const backend = await startFtpBackend();
    await mkdir(join(backend.folder, 'inbox'));
    const connection = await connectTo(ftpDriver, { ...backend.config, base_path: 'inbox' });
    await connection.send('put', { path: 'a.txt' }, 'a');
    expect(await readdir(join(backend.folder, 'inbox'))).to.deep.equal(['a.txt']);
    await connection.close();
    await backend.remove();
  });
});

describe('driver ftp: links', () => {
  it('lists a link over sftp as neither a file nor a folder', async () => {
    const backend = await startOpenSsh();
    await symlink('/etc', join(backend.folder, 'link'));
    const connection = await connectTo(ftpDriver, backend.config);
    const { payload } = await connection.send('list', { path: '' });
    expect(JSON.parse(String(payload))[0]).to.include({ name: 'link', kind: 'other' });
    await connection.close();
    await backend.remove();
  });
});

describe('driver ftp: TLS', () => {
  let backend: FtpBackend;
  before(async () => {
    backend = await startFtpBackend({ tls: true });
  });
  after(() => backend?.remove());

  it('an ftps service requires a trusted certificate', async () => {
    const { ssl_root_cert: _left, ...config } = backend.config;
    await expectServiceError(
      connectTo(ftpDriver, config),
      'unavailable',
      /certificate of .* was not accepted/,
    );
  });

  it('an ftps service reports a server without TLS', async () => {
    const plain = await startFtpBackend();
    const config = { ...plain.config, protocol: 'ftps' as const };
    await expectServiceError(connectTo(ftpDriver, config), 'unavailable', /does not offer TLS/);
    await plain.remove();
  });
});

describe('driver ftp: SSH', () => {
  let backend: SftpBackend;
  before(async () => {
    backend = await startOpenSsh();
  });
  after(() => backend?.remove());

  it('an sftp service connects only to the server with the key of its config', async () => {
    const connection = await connectTo(ftpDriver, { ...backend.config, host_key: backend.fingerprint });
    expect(await connection.test()).to.equal(`SFTP server at 127.0.0.1:${backend.config.port}`);
    await connection.close();
    const other = { ...backend.config, host_key: `SHA256:${'A'.repeat(43)}` };
    const message = await expectServiceError(
      connectTo(ftpDriver, other),
      'unavailable',
      /is not the host_key/,
    );
    expect(message).to.include(backend.fingerprint);
  });

  it('an sftp service shows the unchecked key of its server', async () => {
    const connection = await connectTo(ftpDriver, backend.config);
    expect(await connection.test()).to.equal(
      `SFTP server at 127.0.0.1:${backend.config.port}; host key ${backend.fingerprint}, ` +
        'not checked: the config has no host_key',
    );
    await connection.close();
  });

  it('an sftp service reports an invalid private key without showing it', async () => {
    const config = { ...backend.config, private_key: 'no key at all' };
    const message = await expectServiceError(
      connectTo(ftpDriver, config),
      'unavailable',
      /private_key cannot be used/,
    );
    expect(message).not.to.include('no key at all');
  });
});

describe('ftp config', () => {
  it('the config of an ftp service refuses active mode, and fingerprints of MD5', () => {
    const parse = (config: object) => () => parseServiceConfig('ftp', { host: 'h', ...config });
    expect(parse({ passive: false })).to.throw(/^config\.passive: must be true/);
    expect(parse({ passive: false, protocol: 'ftps' })).to.throw(/^config\.passive: must be true/);
    expect(parse({ passive: false, protocol: 'sftp' })()).to.include({ port: 22 });
    expect(parse({ host_key: 'MD5:aa:bb' })).to.throw(/^config\.host_key: /);
  });
});
