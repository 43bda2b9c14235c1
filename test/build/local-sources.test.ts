import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { localSources, withLocalSources } from '../../src/build/local-sources.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('sources of crates in folders of this machine', () => {
  let folder: TempDir;
  before(async () => {
    folder = await tempDir('local-sources');
    await mkdir(join(folder.path, 'there'));
  });
  after(() => folder.remove());

  it('reads folders of crates from the configuration of cargo, and replaces them', () => {
    const home = join(folder.path, '.cargo');
    const there = join(folder.path, 'there');
    const config = [
      '[source.crates-io]',
      'replace-with = "directory"',
      '[source.a]',
      'directory = "there" # relative to the folder around',
      '[source.b]',
      `  local-registry='${there}'`,
      '[source.c]',
      'directory = "/not/there"',
    ].join('\n');
    expect(localSources(config, home)).to.deep.equal([there]);
    expect(
      withLocalSources(config, home, (path) => (path === there ? '/sources/0' : path)).split('\n'),
    ).to.deep.equal([
      '[source.crates-io]',
      'replace-with = "directory"',
      '[source.a]',
      'directory = "/sources/0" # relative to the folder around',
      '[source.b]',
      '  local-registry="/sources/0"',
      '[source.c]',
      'directory = "/not/there"',
    ]);
  });
});
