import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import fc from 'fast-check';
import { createSecretBox } from '../../src/secrets/secret-box.js';
import { actorHostToken, makeServiceToken, readServiceToken } from '../../src/secrets/service-token.js';

describe('service tokens', () => {
  const secrets = createSecretBox('one secret key of ours');

  it('stand for their endpoint, under the same key', () => {
    const id = randomUUID();
    const token = makeServiceToken(secrets, id);
    expect(readServiceToken(secrets, token)).to.equal(id);
    expect(readServiceToken(createSecretBox('one secret key of ours'), token)).to.equal(id);
    expect(readServiceToken(createSecretBox('another secret key'), token)).to.equal(undefined);
  });

  it('cannot be made from others', () => {
    const id = randomUUID();
    const signature = makeServiceToken(secrets, id).slice(id.length + 1);
    for (const forged of [
      `${randomUUID()}.${signature}`,
      `${id}.${actorHostToken(secrets)}`,
      `${id}.${secrets.sign('something else', id)}`,
      id,
      '',
    ]) {
      expect(readServiceToken(secrets, forged), forged).to.equal(undefined);
    }
    fc.assert(fc.property(fc.string(), (text) => readServiceToken(secrets, text) === undefined));
  });
});
