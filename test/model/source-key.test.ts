import { expect } from 'chai';
import { sourceKey } from '../../src/model/source-key.js';

describe('the key of a source', () => {
  it('the key of a source differs with code, crates, versions and features', () => {
    const all = [
      sourceKey('a', {}),
      sourceKey('b', {}),
      sourceKey('a', { uuid: '1' }),
      sourceKey('a', { uuid: '2' }),
      sourceKey('a', { uuid: '1', serde: '1' }),
      sourceKey('a', { uuid: { version: '1', features: ['v4'] } }),
      sourceKey('a', { uuid: { version: '1', features: ['v7'] } }),
    ];
    expect(new Set(all).size).to.equal(all.length);
  });

  it('the key of a source does not depend on the order of crates', () => {
    expect(sourceKey('a', { uuid: '1', serde: '1' })).to.equal(sourceKey('a', { serde: '1', uuid: '1' }));
    expect(sourceKey('a', null)).to.equal(sourceKey('a', {}));
  });
});
