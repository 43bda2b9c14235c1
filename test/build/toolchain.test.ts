/** The check of the Rust toolchain by a worker that is started by itself. */
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { tempDir } from '../support/temp.js';

const WORKER = fileURLToPath(new URL('../../jobs/worker.js', import.meta.url));

describe('a worker', () => {
  /** The error of a worker with these programs on the PATH. */
  const errorWith = async (programs: Record<string, string>) => {
    const folder = await tempDir('programs');
    try {
      for (const [name, script] of Object.entries(programs)) {
        await writeFile(join(folder.path, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      }
      const env = {
        PATH: folder.path,
        DATA_DIR: join(folder.path, 'data'),
        DATABASE_URL: 'postgres://127.0.0.1:1/none',
      };
      const { status, stdout } = spawnSync(process.execPath, [WORKER], { env, encoding: 'utf8' });
      expect(status).to.equal(1);
      return stdout;
    } finally {
      await folder.remove();
    }
  };

  it('a worker ends with the version of a toolchain that is too old, and with where to get a newer one', async () => {
    const old = { rustc: 'echo "rustc 1.63.0 (4b91a6ea7 2022-08-08)"', cargo: 'echo "cargo 1.65.0"' };
    expect(await errorWith(old))
      .to.match(/rustc and cargo \d+\.\d+ or newer\. Found: rustc 1\.63\.0/)
      .and.include('https://rustup.rs');
    expect(await errorWith({ ...old, rustc: 'echo "rustc 1.1000.0"' })).to.include('Found: cargo 1.65.0');
  });

  it('a worker ends with what to install when there is no toolchain', async () => {
    expect(await errorWith({}))
      .to.match(/Found: `rustc -vV` does not work\. Install a current toolchain/)
      .and.not.include('apt-get');
  });
});
