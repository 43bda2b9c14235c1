import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { tempDir } from '../support/temp.js';

const PREPARE = fileURLToPath(new URL('../../../scripts/prepare.mjs', import.meta.url));
const COMPILE = fileURLToPath(new URL('../../../scripts/compile.mjs', import.meta.url));

describe('building', () => {
  it('removes the output of deleted sources from dist/, and nothing else', async () => {
    const { removeStale } = (await import(COMPILE)) as { removeStale(root: string): void };
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

describe('the check of the Rust toolchain', () => {
  /** Runs `npm run up` with these programs on the PATH, and nothing else. */
  const up = async (programs: Record<string, string>) => {
    const folder = await tempDir('programs');
    try {
      for (const [name, script] of Object.entries(programs)) {
        await writeFile(join(folder.path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      }
      const entry = fileURLToPath(new URL('../../../scripts/up.mjs', import.meta.url));
      const child = spawnSync(process.execPath, [entry], { env: { PATH: folder.path }, encoding: 'utf8' });
      expect(child.status).to.equal(1);
      expect(child.stdout).not.to.include('Building');
      return child.stderr;
    } finally {
      await folder.remove();
    }
  };
  const needed = /needs rustc and cargo \d+\.\d+ or newer\. Found: /;

  it('names the version of Rust that is too old, and where to get a newer one', async () => {
    const said = await up({
      rustc: 'echo "rustc 1.63.0 (4b91a6ea7 2022-08-08)"',
      cargo: 'echo "cargo 1.65.0"',
    });
    expect(said).to.match(needed).and.include('Found: rustc 1.63.0').and.include('https://rustup.rs');
  });

  it('says that there is no Rust toolchain, or that it does not work', async () => {
    expect(await up({}))
      .to.match(needed)
      .and.include('no `rustc` on the PATH');
    const broken = await up({
      rustc: 'echo "error: rustup could not choose a version of rustc" >&2; exit 1',
    });
    expect(broken)
      .to.include('`rustc` fails: error: rustup could not choose')
      .and.include('rustup default stable');
  });

  it('compares versions by their numbers', async () => {
    const { isOlder } = (await import(PREPARE)) as { isOlder(version: string, needed: string): boolean };
    expect(isOlder('1.63.0', '1.80')).to.equal(true);
    expect(isOlder('1.80.0', '1.80')).to.equal(false);
    expect(isOlder('1.100.0', '1.80')).to.equal(false);
    expect(isOlder('2.0.0', '1.80')).to.equal(false);
    expect(isOlder('20.18.3', '20.19')).to.equal(true);
  });
});
