import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { ConfigError } from '../../src/config.js';
import {
  createSecretBox,
  loadSecretBox,
  SecretKeyError,
  sealedPrefix,
} from '../../src/secrets/secret-box.js';
import { type TempDir, tempDir } from '../support/temp.js';

/** As versions before sealed it, with the key of these tests. */
const WITHOUT_KEY_ID = 'v1:qVLqXQcPJLLhASjakYTw7Kivm2Ge6Hq1JeH+Wp1/U9AJ7OSaY0PWAbQfZw3wnTloPjeQ6uTQ';

describe('the secret box', () => {
  const box = createSecretBox('a key of this test');

  it('opens any text that the secret box has sealed', () => {
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

  it('opens no text that was changed, never sealed, or sealed with another key', () => {
    const sealed = box.seal('secret');
    expect(() => createSecretBox('another key of it').open(sealed)).to.throw(
      SecretKeyError,
      /another SECRET_KEY/,
    );
    const [prefix] = /^v2:[0-9a-f]{12}:/.exec(sealed) ?? expect.fail(sealed);
    const bytes = Buffer.from(sealed.slice(prefix.length), 'base64');
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      for (const layout of [prefix, 'v1:']) {
        expect(() => box.open(`${layout}${changed.toString('base64')}`)).to.throw(SecretKeyError);
        const cut = bytes.subarray(0, at).toString('base64');
        expect(() => box.open(`${layout}${cut}`)).to.throw(SecretKeyError);
      }
    }
    for (const text of [
      '',
      'v1:',
      'v2:AAAA',
      'v2::',
      prefix,
      sealed.replace(prefix, 'v2:000000000000:'),
      'secret',
    ])
      expect(() => box.open(text)).to.throw(SecretKeyError);
  });

  it('says which key has sealed a text, without revealing the key', () => {
    const [id] = box.keyIds;
    expect(id).to.match(/^[0-9a-f]{12}$/);
    expect(box.seal('x').startsWith(sealedPrefix(id))).to.equal(true);
    expect(createSecretBox('a key of this test').keyIds).to.deep.equal([id]);
    expect(createSecretBox('another key of it').keyIds).not.to.deep.equal([id]);
  });

  it('opens texts that were sealed before sealed texts named their key', () => {
    expect(box.open(WITHOUT_KEY_ID)).to.equal('sealed by the first layout');
    expect(createSecretBox('another key of it', ['a key of this test']).open(WITHOUT_KEY_ID)).to.equal(
      'sealed by the first layout',
    );
    expect(() => createSecretBox('another key of it').open(WITHOUT_KEY_ID)).to.throw(SecretKeyError);
  });

  it('opens and accepts what previous keys have sealed and signed, and uses its own key', () => {
    const old = createSecretBox('the old key of it');
    const both = createSecretBox('the new key of it', ['the old key of it']);
    const fresh = createSecretBox('the new key of it');
    expect(both.open(old.seal('x'))).to.equal('x');
    expect(fresh.open(both.seal('x'))).to.equal('x');
    expect(() => old.open(both.seal('x'))).to.throw(SecretKeyError);
    expect(() => fresh.open(old.seal('x'))).to.throw(SecretKeyError);
    expect(both.keyIds).to.deep.equal([...fresh.keyIds, ...old.keyIds]);
    expect(both.sign('p', 't')).to.equal(fresh.sign('p', 't'));
    expect(both.signatures('p', 't')).to.deep.equal([fresh.sign('p', 't'), old.sign('p', 't')]);
  });

  describe('the secret box of an installation', () => {
    let folder: TempDir;

    beforeEach(async () => {
      folder = await tempDir('secrets');
    });
    afterEach(() => folder.remove());

    it('seals with SECRET_KEY, and writes no key file', async () => {
      const config = { SECRET_KEY: 'sixteen letters!', DATA_DIR: folder.path };
      const sealed = (await loadSecretBox(config)).seal('x');
      expect((await loadSecretBox(config)).open(sealed)).to.equal('x');
      expect(await readdir(folder.path)).to.deep.equal([]);
    });

    it('makes a key file that only its owner can read, and uses it the next time', async () => {
      const config = { SECRET_KEY: undefined, DATA_DIR: join(folder.path, 'new', 'data') };
      const sealed = (await loadSecretBox(config)).seal('x');
      expect((await loadSecretBox(config)).open(sealed)).to.equal('x');
      expect(await readdir(config.DATA_DIR)).to.deep.equal(['secret.key']);
      const path = join(config.DATA_DIR, 'secret.key');
      expect((await stat(path)).mode & 0o777).to.equal(0o600);
      expect((await readFile(path, 'utf8')).trim().length).to.be.at.least(32);
    });

    it('makes one secret key, however many processes start at once', async () => {
      const config = { SECRET_KEY: undefined, DATA_DIR: folder.path };
      const boxes = await Promise.all(Array.from({ length: 8 }, () => loadSecretBox(config)));
      const sealed = boxes[0]?.seal('x') ?? '';
      for (const other of boxes) expect(other.open(sealed)).to.equal('x');
      expect(await readdir(folder.path)).to.deep.equal(['secret.key']);
    });

    it('accepts the next and the previous key, beside SECRET_KEY or the key file', async () => {
      const [next, previous] = ['the next key of ours', 'the previous key of ours'];
      const sealed = [next, previous].map((key) => createSecretBox(key).seal('x'));
      await writeFile(join(folder.path, 'secret.key'), 'the key of the file\n');
      for (const SECRET_KEY of ['sixteen letters!', undefined]) {
        const config = { SECRET_KEY, DATA_DIR: folder.path };
        const box = await loadSecretBox({
          ...config,
          SECRET_KEY_NEXT: next,
          SECRET_KEY_PREVIOUS: previous,
        });
        for (const text of sealed) expect(box.open(text)).to.equal('x');
        expect((await loadSecretBox(config)).open(box.seal('y'))).to.equal('y');
      }
    });

    it('refuses a next or previous key that stands alone, is too short or equals SECRET_KEY', async () => {
      const config = { SECRET_KEY: undefined, DATA_DIR: folder.path };
      for (const name of ['SECRET_KEY_NEXT', 'SECRET_KEY_PREVIOUS']) {
        const wrong = [
          [{ ...config, [name]: 'sixteen letters!' }, new RegExp(`^${name}: needs SECRET_KEY, or a key in`)],
          [{ ...config, SECRET_KEY: 'sixteen letters!', [name]: 'too short' }, new RegExp(`^${name}: .*16`)],
          [
            { ...config, SECRET_KEY: 'sixteen letters!', [name]: 'sixteen letters!' },
            new RegExp(`^${name}: is the same`),
          ],
        ] as const;
        for (const [given, message] of wrong) {
          const error: unknown = await loadSecretBox(given).catch((thrown: unknown) => thrown);
          expect(error).to.be.instanceOf(ConfigError).with.property('message').that.matches(message);
        }
      }
      expect(await readdir(folder.path)).to.deep.equal([]);
    });

    it('refuses a secret key that is too short', async () => {
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
