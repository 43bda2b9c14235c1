/** Artifacts in a folder, and the cache of a gateway in front of them. */
import { createHash } from 'node:crypto';
import { access, readdir, readFile, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { type ArtifactStore, digestFile } from '../../src/artifacts/artifact-store.js';
import { DirectoryStore } from '../../src/artifacts/directory-store.js';
import { ArtifactCache } from '../../src/gateway/handlers/artifact-cache.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('artifacts in a folder', () => {
  let folder: TempDir;
  let store: DirectoryStore;

  beforeEach(async () => {
    folder = await tempDir('artifacts');
    store = new DirectoryStore(join(folder.path, 'store'));
  });
  afterEach(() => folder.remove());

  const make = async (content: string) => {
    const file = join(folder.path, 'made');
    await writeFile(file, content);
    const digest = createHash('sha256').update(content).digest('hex');
    expect(await digestFile(file)).to.equal(digest);
    return { file, digest };
  };
  const put = async (content: string) => {
    const { file, digest } = await make(content);
    await store.put(digest, file);
    return digest;
  };
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => undefined,
      (error: Error) => error.message,
    );
  const inStore = (digest: string) => join(folder.path, 'store', digest.slice(0, 2), digest);

  it('stores an artifact in a folder, and returns it', async () => {
    const { file, digest } = await make('one');
    expect(await store.has(digest)).to.equal(false);
    await store.put(digest, file);
    await store.put(digest, file);
    expect(await store.has(digest)).to.equal(true);
    const copy = join(folder.path, 'copy');
    await store.fetch(digest, copy);
    expect(await readFile(copy, 'utf8')).to.equal('one');
    expect(await readdir(join(folder.path, 'store', digest.slice(0, 2)))).to.deep.equal([digest]);
  });

  it('counts an empty artifact as missing, and a failure to look for one as a failure', async () => {
    const digest = await put('content');
    await writeFile(inStore(digest), '');
    expect(await store.has(digest)).to.equal(false);
    const other = '0'.repeat(64);
    await writeFile(join(folder.path, 'store', '00'), 'a file in place of the folder');
    expect(await failure(store.has(other))).to.match(/ENOTDIR/);
  });

  it('accepts the same artifact from concurrent callers', async () => {
    const { file, digest } = await make('many');
    await Promise.all(Array.from({ length: 10 }, () => store.put(digest, file)));
    expect(await readdir(join(folder.path, 'store', digest.slice(0, 2)))).to.deep.equal([digest]);
  });

  it('fails to store a missing file as an artifact, and leaves no partial files', async () => {
    const digest = 'ab'.repeat(32);
    expect(await failure(store.put(digest, join(folder.path, 'missing')))).to.match(/ENOENT/);
    expect(await store.has(digest)).to.equal(false);
    expect(await readdir(join(folder.path, 'store', 'ab'))).to.deep.equal([]);
    expect(await failure(store.fetch(digest, join(folder.path, 'copy')))).to.match(/ENOENT/);
  });

  describe('the cache of a gateway', () => {
    let cache: ArtifactCache;
    let fetches: number;

    beforeEach(() => {
      fetches = 0;
      const counting: ArtifactStore = {
        has: (digest) => store.has(digest),
        put: (digest, file) => store.put(digest, file),
        fetch: (digest, destination) => {
          fetches++;
          return store.fetch(digest, destination);
        },
        remove: (digest) => store.remove(digest),
      };
      cache = new ArtifactCache(join(folder.path, 'cache'), counting);
    });

    it('fetches an artifact once for concurrent requests, and makes it executable', async () => {
      const digest = await put('#!/bin/sh\n');
      const paths = await Promise.all([1, 2, 3].map(() => cache.get(digest)));
      expect(new Set(paths).size).to.equal(1);
      await cache.get(digest);
      expect(fetches).to.equal(1);
      const { mode } = await stat(paths[0] ?? '');
      expect(mode & 0o777).to.equal(0o555);
    });

    it('refuses a damaged artifact, and accepts it when it is intact again', async () => {
      const digest = await put('good');
      await writeFile(inStore(digest), 'evil');
      expect(await failure(cache.get(digest))).to.match(new RegExp(`${digest} is damaged`));
      expect(await readdir(join(folder.path, 'cache'))).to.deep.equal([]);
      await writeFile(inStore(digest), 'good');
      expect(await readFile(await cache.get(digest), 'utf8')).to.equal('good');
    });

    it('keeps only the given artifacts, and new ones, in the cache', async () => {
      const [first, second] = [await put('first'), await put('second')];
      const path = await cache.get(first);
      const unused = await cache.get(second);
      const leftOver = join(folder.path, 'cache', `${first}.left-over`);
      await writeFile(leftOver, '');
      await cache.keepOnly([first]);
      expect(await readdir(join(folder.path, 'cache')), 'what is new').to.have.length(3);
      const longAgo = new Date(Date.now() - 2 * 3_600_000);
      for (const file of [path, unused, leftOver]) await utimes(file, longAgo, longAgo);
      await cache.keepOnly([first]);
      expect(await readdir(join(folder.path, 'cache'))).to.deep.equal([first]);
      await access(path);
      expect(await readFile(await cache.get(second), 'utf8')).to.equal('second');
    });
  });
});
