import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { ConfigError } from '../../src/config.js';
import { createSecretBox, loadSecretBox, SecretKeyError } from '../../src/secrets/secret-box.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('the secret box', () => {
  const box = createSecretBox('a key of this test');

  it('opens what it sealed', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const sealed = box.seal(text);
        expect(box.open(sealed)).to.equal(text);
        if (text.length > 6) expect(sealed).to.not.include(text);
      }),
    );
  });

  it('seals the same text differently every time', () => {
    expect(box.seal('x')).to.not.equal(box.seal('x'));
  });

  it('does not open what was sealed with another key, or changed, or never sealed', () => {
    const sealed = box.seal('secret');
    expect(() => createSecretBox('another key of it').open(sealed)).to.throw(
      SecretKeyError,
      /another SECRET_KEY/,
    );
    const bytes = Buffer.from(sealed.slice(3), 'base64');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      expect(() => box.open(`v1:${changed.toString('base64')}`)).to.throw(SecretKeyError);
      expect(() => box.open(`v1:${bytes.subarray(0, at).toString('base64')}`)).to.throw(SecretKeyError);
    }
    for (const text of ['', 'v1:', 'v2:AAAA', 'secret'])
      expect(() => box.open(text)).to.throw(SecretKeyError);
  });

  describe('of an installation', () => {
    let folder: TempDir;

    beforeEach(async () => {
      folder = await tempDir('secrets');
    });
    afterEach(() => folder.remove());

    it('uses SECRET_KEY, and writes no file', async () => {
      const config = { SECRET_KEY: 'sixteen letters!', DATA_DIR: folder.path };
      const sealed = (await loadSecretBox(config)).seal('x');
      expect((await loadSecretBox(config)).open(sealed)).to.equal('x');
      expect(await readdir(folder.path)).to.deep.equal([]);
    });

    it('makes a key that only its owner can read, and finds it again', async () => {
      const config = { SECRET_KEY: undefined, DATA_DIR: join(folder.path, 'new', 'data') };
      const sealed = (await loadSecretBox(config)).seal('x');
      expect((await loadSecretBox(config)).open(sealed)).to.equal('x');
      expect(await readdir(config.DATA_DIR)).to.deep.equal(['secret.key']);
      const path = join(config.DATA_DIR, 'secret.key');
      expect((await stat(path)).mode & 0o777).to.equal(0o600);
      expect((await readFile(path, 'utf8')).trim().length).to.be.at.least(32);
    });

    it('is one, however many processes start at once', async () => {
      const config = { SECRET_KEY: undefined, DATA_DIR: folder.path };
      const boxes = await Promise.all(Array.from({ length: 8 }, () => loadSecretBox(config)));
      const sealed = boxes[0]?.seal('x') ?? '';
      for (const other of boxes) expect(other.open(sealed)).to.equal('x');
      expect(await readdir(folder.path)).to.deep.equal(['secret.key']);
    });

    it('does not take a key that is too short', async () => {
      const tooShort = { SECRET_KEY: 'fifteen letters', DATA_DIR: folder.path };
      await writeFile(join(folder.path, 'secret.key'), 'short\n');
      for (const config of [tooShort, { ...tooShort, SECRET_KEY: undefined }]) {
        const error: unknown = await loadSecretBox(config).catch((thrown: unknown) => thrown);
        expect(error)
          .to.be.instanceOf(ConfigError)
          .with.property('message')
          .that.matches(/16 characters/);
      }
    });
  });
});
