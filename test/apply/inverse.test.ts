/** What a rollback of an apply makes of an object that others have changed meanwhile. */
import { expect } from 'chai';
import { inverseOf } from '../../src/apply/inverse.js';
import type { InstallationObject } from '../../src/apply/objects.js';

const FILE = { digest: 'd', size: 1 };

const endpoint = (more: object) =>
  ({
    kind: 'endpoint',
    host: '*',
    method: 'GET',
    route: '/a',
    name: 'a',
    ...more,
  }) as unknown as InstallationObject;
const dependencies = { regex: '1' };
const old = { code: '// old', entry: null, files: { 'a.rs': FILE }, edition: null, lock: null };
const before = endpoint({ ...old, dependencies });
const made = { code: '// new', entry: 'src/h.rs', files: { 'src/b.rs': FILE }, edition: '2024', lock: FILE };
const after = endpoint({ ...made, dependencies });
const inverse = (now: InstallationObject) =>
  inverseOf({ action: 'update', id: '1', before, after, fields: [] }, now, now);

describe('the inverse of a change of an apply', () => {
  it('brings back code, entry, files, edition, crates and lock together', () => {
    expect(inverse(after).change?.after).to.deep.equal(before);
    const described = endpoint({ ...after, name: 'b' });
    expect(inverse(described).change?.after).to.deep.equal({ ...before, name: 'b' });
  });

  it('leaves the whole source as it is when somebody has changed a part of it', () => {
    const now = endpoint({ ...after, files: { 'src/b.rs': FILE, 'handler.rs': FILE } });
    const { change, warnings } = inverse(now);
    expect(change).to.equal(undefined);
    expect(warnings).to.have.length(1);
    expect(warnings[0]).to.match(/: its source \(files\) was changed since, and stays as it is$/);
  });

  it('brings back no code without the crates that it was written for', () => {
    const now = endpoint({ ...after, dependencies: { regex: '2' } });
    expect(inverse(now).change).to.equal(undefined);
    expect(inverse(now).warnings[0]).to.match(/: its source \(dependencies\) was changed since/);
  });

  it('has nothing to bring back where somebody has done it already', () => {
    expect(inverse(before)).to.deep.equal({ change: undefined, warnings: [] });
  });
});
