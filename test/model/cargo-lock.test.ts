/** Cargo.locks: what is wrong with one, what it has, and what differs between two. */
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import { changedCrates, cratesInLock, lockProblem, withoutCrates } from '../../src/model/cargo-lock.js';
import { FORMAT_KEYWORDS } from '../../src/model/formats.js';
import { lockOf } from '../support/locks.js';

const LOCK = lockOf({ rand: '0.9.1', uuid: '1.17.0' });

describe('a Cargo.lock', () => {
  it('accepts what cargo has written', () => {
    for (const text of [
      LOCK,
      LOCK.replaceAll('\n', '\r\n'),
      readFileSync('rust/Cargo.lock', 'utf8'),
      readFileSync('rust/sdk/Cargo.lock', 'utf8'),
      '[[package]]\nname = "a"\nversion = "1.0.0"\n\n[metadata]\n"checksum b 1.0.0 (registry+x)" = "0f"\n',
    ])
      expect(lockProblem(text)).to.equal(undefined);
  });

  for (const [what, text, message] of [
    ['no text', '', /which has packages$/],
    ['a manifest', '[package]\nname = "a"\n', /which line 1 is not of: "\[package\]"$/],
    [
      'a conflict of git',
      LOCK.replace('name = "uuid"', '<<<<<<< HEAD'),
      /line \d+ is not of: "<<<<<<< HEAD"$/,
    ],
    [
      'a package without a version',
      '[[package]]\nname = "a"\n',
      /the package of line 1 has no name, or no ver/,
    ],
    ['other keys', `${LOCK}[profile]\n`, /is not of: "\[profile\]"$/],
    ['a long line', `${'x'.repeat(100)}\n`, /is not of: "x{60}…"$/],
    ['megabytes', LOCK.repeat(10_000), /^has \d+ bytes; a Cargo\.lock may have at most 2097152$/],
  ] as const)
    it(`refuses ${what} as a lock`, () => expect(lockProblem(text)).to.match(message));

  it('reads the crates of a lock, without local ones', () => {
    expect(cratesInLock(LOCK).map(({ name, version }) => [name, version])).to.deep.equal([
      ['rand', '0.9.1'],
      ['uuid', '1.17.0'],
    ]);
  });

  it('takes some crates out of a lock, and leaves the rest as it is', () => {
    const left = withoutCrates(LOCK, new Set(['uuid', 'none']));
    expect(cratesInLock(left).map(({ name }) => name)).to.deep.equal(['rand']);
    expect(lockProblem(left)).to.equal(undefined);
    expect(LOCK.startsWith(left.trimEnd())).to.equal(true);
    expect(withoutCrates(LOCK, new Set())).to.equal(LOCK);
  });

  it('says which crates differ between two locks, also where there are several versions of one', () => {
    const other = lockOf({ rand: '0.9.2', serde: '1.0.0' });
    expect(changedCrates(LOCK, other)).to.deep.equal([
      { name: 'rand', from: '0.9.1', to: '0.9.2' },
      { name: 'serde', from: null, to: '1.0.0' },
      { name: 'uuid', from: '1.17.0', to: null },
    ]);
    const both = `${LOCK}\n${lockOf({ rand: '0.8.5' })}`;
    expect(changedCrates(LOCK, both)).to.deep.equal([{ name: 'rand', from: null, to: '0.8.5' }]);
    expect(changedCrates(LOCK, LOCK)).to.deep.equal([]);
  });

  it('says when a crate is of another revision of git', () => {
    const at = (rev: string) =>
      LOCK.replace(/registry\+https:[^"]*/, `git+https://git.example/rand?rev=${rev}#${rev}`);
    const [changed, ...others] = changedCrates(at('aa'), at('bb'));
    expect(others).to.deep.equal([]);
    expect(changed).to.include({ name: 'rand', from: '0.9.1 (git+https://git.example/rand?rev=aa#aa)' });
  });

  it('accepts the locks that the description of the API lets clients make', () => {
    const { pattern } = FORMAT_KEYWORDS['cargo-lock'] ?? expect.fail('not described');
    const text = 'version = 4\n\n[[package]]\nname = "a"\nversion = "1.2.3"\n';
    expect(text).to.match(new RegExp(pattern));
    expect(lockProblem(text)).to.equal(undefined);
  });
});
