/** Copies of a toolchain in a folder that only root may enter. */
import { appendFile, chmod, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { reachableToolchain } from '../../src/build/reachable-toolchain.js';
import type { Toolchain } from '../../src/build/toolchain.js';
import { createTestLog } from '../support/log.js';
import { type TempDir, tempDir } from '../support/temp.js';

describe('a toolchain that other users cannot enter', () => {
  let folder: TempDir;
  let installed: Toolchain;
  let target: string;

  beforeEach(async () => {
    folder = await tempDir('toolchain');
    const closed = join(folder.path, 'closed');
    const [sysroot, sdk] = [join(closed, 'rust'), join(closed, 'sdk')];
    target = join(folder.path, 'build');
    await mkdir(target);
    const files = [join(sysroot, 'bin/rustc'), join(sysroot, 'lib/std.rlib'), join(sdk, 'src/lib.rs')];
    for (const file of [...files, join(sysroot, 'share/doc'), join(sdk, 'target/big')]) {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, 'old', { mode: 0o644 });
    }
    await chmod(join(sysroot, 'bin/rustc'), 0o755);
    await chmod(closed, 0o700);
    const [rustc, cargo] = [join(sysroot, 'bin/rustc'), '/usr/bin/cargo'];
    installed = { rustc, cargo, sysroot, sdk, version: 'rustc 1.95.0', host: 'x86_64', fingerprint: 'f' };
  });
  afterEach(() => folder.remove());

  const reach = (realPaths = true) => reachableToolchain(installed, realPaths, target, createTestLog().log);
  const status = async (...path: string[]) => {
    const { ino, mode } = await stat(join(...path));
    return { ino, mode: mode & 0o777 };
  };

  it('copies a closed toolchain once: Rust by hard links without documentation, the SDK without output', async () => {
    const copy = await reach();
    expect(copy).to.include({ rustc: join(copy.sysroot, 'bin/rustc'), cargo: '/usr/bin/cargo' });
    expect(await status(copy.rustc)).to.deep.equal(await status(installed.rustc));
    expect((await status(copy.sysroot)).mode).to.equal(0o755);
    for (const missing of [join(copy.sysroot, 'share'), join(copy.sdk, 'target')])
      expect(await stat(missing).catch(() => undefined), missing).to.equal(undefined);
    expect(await reach()).to.deep.equal(copy);
  });

  it('uses a closed toolchain as it is in a sandbox, but copies an SDK with files closed to others', async () => {
    expect(await reach(false)).to.deep.equal(installed);
    await chmod(join(installed.sdk, 'src'), 0o700);
    const { sdk, sysroot } = await reach(false);
    expect(sysroot).to.equal(installed.sysroot);
    expect(dirname(sdk)).to.equal(target);
    expect((await status(sdk, 'src')).mode).to.equal(0o755);
  });

  it('keeps the copied SDK of a fingerprint when its source is edited in place', async () => {
    const { sdk } = await reach();
    await appendFile(join(installed.sdk, 'src/lib.rs'), ' new');
    expect(await readFile(join(sdk, 'src/lib.rs'), 'utf8')).to.equal('old');
    installed = { ...installed, fingerprint: 'g' };
    expect(await readFile(join((await reach()).sdk, 'src/lib.rs'), 'utf8')).to.equal('old new');
  });

  it('makes the files of a toolchain readable for others in the copy alone', async () => {
    const files = [
      [installed.rustc, 0o700],
      [join(installed.sysroot, 'lib'), 0o700],
      [join(installed.sysroot, 'lib/std.rlib'), 0o400],
      [join(installed.sdk, 'src/lib.rs'), 0o600],
    ] as const;
    for (const [file, mode] of files) await chmod(file, mode);
    const { sysroot, sdk, rustc } = await reach();
    for (const [file, mode] of files) expect((await status(file)).mode, file).to.equal(mode);
    expect((await status(rustc)).mode).to.equal(0o755);
    expect((await status(sysroot, 'lib')).mode).to.equal(0o755);
    expect((await status(sysroot, 'lib/std.rlib')).mode).to.equal(0o644);
    expect((await status(sdk, 'src/lib.rs')).mode).to.equal(0o644);
  });
});
