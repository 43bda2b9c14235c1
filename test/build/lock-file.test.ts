/** The packages of a Cargo.lock. */
import { expect } from 'chai';
import { notInLock, withPackagesOf } from '../../src/build/lock-file.js';
import { lockedPackages } from '../../src/model/cargo-lock.js';

const SOURCE = 'registry+https://github.com/rust-lang/crates.io-index';
const entry = (name: string, version: string, dependencies: readonly string[] = [], source = SOURCE) =>
  [
    `[[package]]\nname = "${name}"\nversion = "${version}"`,
    ...(source === '' ? [] : [`source = "${source}"\nchecksum = "${name}-${version}"`]),
    ...(dependencies.length > 0
      ? [`dependencies = [\n${dependencies.map((one) => ` "${one}",\n`).join('')}]`]
      : []),
  ].join('\n');
const lock = (...entries: readonly string[]) => `version = 4\n\n${entries.join('\n\n')}\n`;

describe('the packages of a Cargo.lock', () => {
  it('have names, versions, sources, checksums and dependencies', () => {
    const text = lock(entry('a', '1.0.0', ['b', 'c 2.0.0']), entry('own', '0.0.0', [], ''));
    expect(lockedPackages(text)).to.deep.equal([
      { name: 'a', version: '1.0.0', source: SOURCE, checksum: 'a-1.0.0', dependencies: ['b', 'c 2.0.0'] },
      { name: 'own', version: '0.0.0', source: null, checksum: null, dependencies: [] },
    ]);
  });

  it('must be those of the crates that a manifest asks for, and all below them', () => {
    const resolved = lock(
      entry('handler', '0.0.0', ['a', 'sdk'], ''),
      entry('sdk', '0.1.0', ['d'], ''),
      ...[entry('a', '1.0.0', ['b 1.0.0']), entry('b', '1.0.0'), entry('b', '2.0.0'), entry('d', '1.0.0')],
    );
    const missing = (given: string, crates: readonly string[]) => notInLock(given, resolved, crates)?.name;
    // What only the SDK needs may be added.
    expect(missing(lock(entry('a', '1.0.0'), entry('b', '1.0.0')), ['a'])).to.equal(undefined);
    expect(missing(lock(entry('a', '1.0.0'), entry('b', '2.0.0')), ['a'])).to.equal('b');
    expect(missing(lock(entry('a', '0.9.0'), entry('b', '1.0.0')), ['a'])).to.equal('a');
  });

  it('are added from another lock where one has none of their name', () => {
    const both = withPackagesOf(lock(entry('a', '1.0.0')), lock(entry('a', '2.0.0'), entry('b', '1.0.0')));
    expect(lockedPackages(both).map(({ name, version }) => `${name} ${version}`)).to.deep.equal([
      'a 1.0.0',
      'b 1.0.0',
    ]);
    expect(both).to.match(/^version = 4\n/);
  });
});
