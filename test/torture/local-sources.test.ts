/** The SDK is built from sources of its crates in a folder, without a network. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { execa } from 'execa';
import { DependencySets } from '../../src/build/dependency-sets.js';
import { reachableToolchain } from '../../src/build/reachable-toolchain.js';
import { HANDLER_PROFILE } from '../../src/build/rustc.js';
import { findToolchain } from '../../src/build/toolchain.js';
import { toolEnvironment } from '../../src/config.js';
import { openSandbox } from '../../src/sandbox/sandbox.js';
import { createTestLog } from '../support/log.js';
import { type TempDir, tempDir } from '../support/temp.js';

const SDK = fileURLToPath(new URL('../../../rust/sdk', import.meta.url));
/** Builds have a low priority: beside other tests, one of half a minute can take ten times as long. */
const BUILD_LIMIT_MS = 540_000;
const LIMITS = {
  timeoutMs: BUILD_LIMIT_MS,
  memoryMb: 4096,
  fileMb: 1024,
  openFiles: 1024,
  processes: 512,
  cpuSeconds: 200,
  diskMb: 2048,
  totalMemoryMb: 8192,
};

describe('sources of crates in folders of this machine', () => {
  let folder: TempDir;
  const over = new AbortController();
  let preparing: Promise<unknown> | undefined;
  before(async () => {
    folder = await tempDir('local-sources');
  });
  after(async () => {
    // A build that goes on would be in the way of other tests.
    over.abort();
    await preparing;
    await folder.remove();
  });

  it('builds a dependency set in the sandbox from a folder of vendored crates', async function () {
    this.timeout(BUILD_LIMIT_MS + 60_000);
    const [home, vendor] = [join(folder.path, 'cargo'), join(folder.path, 'vendor')];
    await execa('cargo', ['vendor', '--locked', vendor], { cwd: SDK });
    await mkdir(home);
    const config = `[source.crates-io]\nreplace-with = "vendored"\n[source.vendored]\ndirectory = "${vendor}"\n`;
    await writeFile(join(home, 'config.toml'), config);
    const { log } = createTestLog();
    const sandbox = await openSandbox('required', log);
    const installed = await findToolchain(HANDLER_PROFILE);
    await mkdir(join(folder.path, 'toolchain'));
    const options = {
      root: join(folder.path, 'sets'),
      toolchain: await reachableToolchain(installed, false, join(folder.path, 'toolchain'), log),
      sandbox,
      env: { ...toolEnvironment(), CARGO_HOME: home },
      limits: LIMITS,
      crateSources: [],
      credentials: async () => [],
      signal: over.signal,
    };
    const sets = new DependencySets(options, log);
    const preparation = sets.prepare({ dependencies: {}, async: false });
    preparing = preparation;
    const prepared = await preparation;
    expect(prepared.ok, JSON.stringify(prepared)).to.equal(true);
  });
});
