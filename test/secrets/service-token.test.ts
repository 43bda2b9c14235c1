import { randomUUID } from 'node:crypto';
import { readdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import {
  actorHostToken,
  actorHostTokens,
  issueServiceToken,
  NONCE_FILE,
  readServiceToken,
  signServiceToken,
  validNonces,
} from '../../src/secrets/service-token.js';
import { THIS_PROCESS } from '../../src/util/process-liveness.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('service tokens', () => {
  const secrets = createSecretBox('one secret key of ours');
  const id = randomUUID();
  let data: TempDir;
  let folder: string;
  before(async () => {
    data = await tempDir('tokens');
    folder = data.path;
  });
  after(() => data.remove());

  const read = (token: string, by = secrets) => readServiceToken(by, folder, token)?.endpointId;

  it('reads the endpoint from a service token that was signed with the same key', async () => {
    const { token } = await issueServiceToken(secrets, folder, id, undefined);
    expect(read(token)).to.equal(id);
    expect(read(token, createSecretBox('one secret key of ours'))).to.equal(id);
    expect(read(token, createSecretBox('another secret key'))).to.equal(undefined);
  });

  it('issues a different service token each time, valid until it is revoked', async () => {
    const [first, second] = [
      await issueServiceToken(secrets, folder, id, undefined),
      await issueServiceToken(secrets, folder, id, undefined),
    ];
    expect(first.token).not.to.equal(second.token);
    await first.revoke();
    expect(read(first.token)).to.equal(undefined);
    expect(read(second.token)).to.equal(id);
    await second.revoke();
    expect(read(second.token)).to.equal(undefined);
    await second.revoke();
  });

  it('accepts service tokens and tokens of the actor host that any of several keys has signed', async () => {
    const [old, fresh] = [createSecretBox('the old key of ours'), createSecretBox('the new key of ours')];
    const both = createSecretBox('the new key of ours', ['the old key of ours']);
    for (const box of [old, fresh]) {
      const { token, revoke } = await issueServiceToken(box, folder, id, undefined);
      expect(read(token, both)).to.equal(id);
      expect(actorHostTokens(both)).to.include(actorHostToken(box));
      await revoke();
    }
    expect(actorHostTokens(fresh)).to.deep.equal([actorHostToken(both)]);
  });

  it('signs a service token again with another key, for the same process', async () => {
    const other = createSecretBox('another secret key');
    const { token, revoke } = await issueServiceToken(secrets, folder, id, undefined);
    const instance = readServiceToken(secrets, folder, token) ?? expect.fail('not valid');
    const again = signServiceToken(other, instance);
    expect(readServiceToken(other, folder, again)).to.deep.equal(instance);
    expect([...(await validNonces(folder))]).to.include(instance.nonce);
    await revoke();
    expect(read(again, other)).to.equal(undefined);
    expect([...(await validNonces(folder))]).not.to.include(instance.nonce);
  });

  it('names the gateway process in the file of a service token', async () => {
    await Promise.all((await readdir(folder)).map((name) => rm(join(folder, name))));
    await issueServiceToken(secrets, folder, id, undefined);
    const [name = ''] = await readdir(folder);
    expect(NONCE_FILE.exec(name)?.[1]).to.equal(THIS_PROCESS);
  });

  it('refuses service tokens that are forged from parts of others', async () => {
    const { token } = await issueServiceToken(secrets, folder, id, undefined);
    const another = await issueServiceToken(secrets, folder, id, undefined);
    const [, nonce = '', signature = ''] = token.split('.');
    const [, otherNonce = ''] = another.token.split('.');
    await writeFile(join(folder, 'anything'), '');
    for (const forged of [
      `${randomUUID()}.${nonce}.${signature}`,
      `${id}.${otherNonce}.${signature}`,
      `${id}.${nonce}.${actorHostToken(secrets)}`,
      `${id}.${nonce}.${secrets.sign('something else', `${id}.${nonce}`)}`,
      `${id}.${nonce}.`,
      `${id}.${nonce}`,
      `${id}.${signature}`,
      `${token}\n`,
      `${token}=`,
      id,
      '',
    ]) {
      expect(read(forged), forged).to.equal(undefined);
    }
    fc.assert(fc.property(fc.string(), (text) => read(text) === undefined));
  });

  it('accepts as the nonce of a service token only the name of a file in its folder', async () => {
    await writeFile(join(folder, 'abc'), '');
    expect(read(signServiceToken(secrets, { endpointId: id, nonce: 'abc' }))).to.equal(id);
    for (const nonce of [
      '',
      '.',
      '..',
      '../abc',
      './abc',
      'abc/',
      '/etc/passwd',
      'abc\0',
      'abd',
      'a'.repeat(300),
    ])
      expect(read(signServiceToken(secrets, { endpointId: id, nonce })), nonce).to.equal(undefined);
  });
});
