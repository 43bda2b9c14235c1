import { expect } from 'chai';
import { keyOf } from '../support/one-file.js';

describe('the key of a source', () => {
  it('the key of a source differs with code, crates, versions and features', () => {
    const all = [
      keyOf('a', {}),
      keyOf('b', {}),
      keyOf('a', { uuid: '1' }),
      keyOf('a', { uuid: '2' }),
      keyOf('a', { uuid: '1', serde: '1' }),
      keyOf('a', { uuid: { version: '1', features: ['v4'] } }),
      keyOf('a', { uuid: { version: '1', features: ['v7'] } }),
    ];
    expect(new Set(all).size).to.equal(all.length);
  });

  it('the key of a source does not depend on the order of crates', () => {
    expect(keyOf('a', { uuid: '1', serde: '1' })).to.equal(keyOf('a', { serde: '1', uuid: '1' }));
    expect(keyOf('a', null)).to.equal(keyOf('a', {}));
  });
});
