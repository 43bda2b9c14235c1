import { expect } from 'chai';
import { sourceKey } from '../../src/model/source-key.js';

describe('the key of a source', () => {
  it('is another one for other code, and for other crates, versions and features', () => {
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

  it('is the same whatever the order of crates is, and without any', () => {
    expect(sourceKey('a', { uuid: '1', serde: '1' })).to.equal(sourceKey('a', { serde: '1', uuid: '1' }));
    expect(sourceKey('a', null)).to.equal(sourceKey('a', {}));
  });
});
