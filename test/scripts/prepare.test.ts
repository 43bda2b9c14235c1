import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { tempDir } from '../support/temp.js';

const PREPARE = fileURLToPath(new URL('../../../scripts/prepare.mjs', import.meta.url));

describe('building', () => {
  it('removes what was compiled from files that are gone, and nothing else', async () => {
    const { removeStale } = (await import(PREPARE)) as { removeStale(root: string): void };
    const root = await tempDir('build');
    try {
      const kept = [
        'dist/test/a.test.js',
        'dist/test/a.test.js.map',
        'dist/knexfile.js',
        'dist/.tsbuildinfo',
      ];
      const stale = ['dist/test/b.test.js', 'dist/test/b.test.js.map', 'dist/migrations/1_gone.js'];
      for (const file of [...kept, ...stale, 'test/a.test.ts', 'knexfile.ts']) {
        await mkdir(dirname(join(root.path, file)), { recursive: true });
        await writeFile(join(root.path, file), '');
      }
      removeStale(root.path);
      const left = [...kept, ...stale].filter((file) => existsSync(join(root.path, file)));
      expect(left).to.deep.equal(kept);
      // Nothing has been built yet.
      removeStale(join(root.path, 'test'));
    } finally {
      await root.remove();
    }
  });
});
