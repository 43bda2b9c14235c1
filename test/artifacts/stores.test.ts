/** One suite for every artifact store. */
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { type ArtifactStore, digestFile } from '../../src/artifacts/artifact-store.js';
import { openArtifactStore } from '../../src/artifacts/open.js';
import { S3Store } from '../../src/artifacts/s3-store.js';
import { ConfigError, loadConfig } from '../../src/config.js';
import { AppError } from '../../src/errors.js';
import { startS3, type TestS3 } from '../support/s3.js';
import { type TempDir, tempDir } from '../support/temp.js';

function storeSuite(open: (folder: string) => Promise<ArtifactStore>): void {
  let folder: TempDir;
  let store: ArtifactStore;
  before(async () => {
    folder = await tempDir('artifacts');
    await mkdir(join(folder.path, 'files'));
    store = await open(folder.path);
  });
  after(() => folder.remove());

  const file = (name: string) => join(folder.path, 'files', name);
  const write = async (name: string, content: Buffer) => {
    await writeFile(file(name), content);
    return digestFile(file(name));
  };

  it('returns a stored artifact to the byte', async () => {
    const content = randomBytes(1_500_000);
    const digest = await write('one', content);
    expect(await store.has(digest)).to.equal(false);
    await store.put(digest, file('one'));
    expect(await store.has(digest)).to.equal(true);
    await store.fetch(digest, file('copy'));
    expect(content.equals(await readFile(file('copy')))).to.equal(true);
  });

  it('accepts the same artifact again, also concurrently', async () => {
    const digest = await write('two', randomBytes(100_000));
    await Promise.all([1, 2, 3].map(() => store.put(digest, file('two'))));
    await store.fetch(digest, file('copy'));
    expect(await digestFile(file('copy'))).to.equal(digest);
  });

  it('removes artifacts, also missing ones', async () => {
    const digest = await write('three', randomBytes(1_000));
    await store.put(digest, file('three'));
    for (let times = 0; times < 2; times++) await store.remove(digest);
    expect(await store.has(digest)).to.equal(false);
  });

  it('fails to fetch a missing artifact', async () => {
    const error = await store.fetch('0'.repeat(64), file('none')).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(Error);
  });
}

describe('artifact store in a folder', () => {
  storeSuite(async (folder) =>
    openArtifactStore(loadConfig({ DATA_DIR: folder, ARTIFACTS_URL: join(folder, 'store') })),
  );
});

describe('artifact store in an S3 bucket', () => {
  let server: TestS3;
  before(async () => {
    server = await startS3('artifacts');
  });
  after(() => server.remove());

  storeSuite(async () =>
    openArtifactStore(loadConfig({ ...server.settings, ARTIFACTS_URL: 's3://artifacts/some/prefix' })),
  );

  it('fails with artifact_store_unavailable when the S3 server does not answer', async () => {
    const sockets = new Set<Socket>();
    const silent = createServer((socket) => void sockets.add(socket));
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as AddressInfo;
    const folder = await tempDir('silent');
    try {
      const settings = { ...server.settings, S3_ENDPOINT: `http://127.0.0.1:${port}` };
      const store = new S3Store('s3://artifacts/x', loadConfig(settings), 200);
      const file = join(folder.path, 'file');
      await writeFile(file, 'content');
      const digest = await digestFile(file);
      for (const work of [
        () => store.has(digest),
        () => store.put(digest, file),
        () => store.fetch(digest, join(folder.path, 'copy')),
        () => store.remove(digest),
      ]) {
        const error = await work().catch((thrown: unknown) => thrown);
        expect(error).to.be.instanceOf(AppError).and.include({ code: 'artifact_store_unavailable' });
        expect((error as AppError).message).to.include('no answer for 0.2 seconds');
      }
    } finally {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => silent.close(resolve));
      await folder.remove();
    }
  });
});

describe('ARTIFACTS_URL', () => {
  it('refuses an ARTIFACTS_URL that cannot be used', async () => {
    for (const environment of [
      { ARTIFACTS_URL: 'https://example.test/artifacts' },
      { ARTIFACTS_URL: 's3:///prefix', S3_ACCESS_KEY: 'a', S3_SECRET_KEY: 's' },
      { ARTIFACTS_URL: 's3://bucket' },
    ]) {
      const refusal = await openArtifactStore(loadConfig(environment)).catch((thrown: unknown) => thrown);
      expect(refusal).to.be.instanceOf(ConfigError).with.property('message').that.includes('ARTIFACTS_URL');
    }
  });
});
