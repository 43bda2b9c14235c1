/** An installation below a system folder, which programs in the sandbox see. Installing there requires root. */
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { makeDataDirectory, secretPaths } from '../../src/bootstrap/data-directory.js';
import { runTool, type ToolResult } from '../../src/build/run-tool.js';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.js';
import { createTestLog } from '../support/log.js';
import { TOOL_LIMITS } from '../support/tool-limits.js';

describe('an installation below /usr/local', () => {
  let root: string;
  let dataDir: string;
  let sandbox: Sandbox;
  before(async () => {
    root = await mkdtemp('/usr/local/edge-gateway-test-');
    await chmod(root, 0o755);
    dataDir = join(root, 'data');
    await makeDataDirectory(dataDir);
    await chmod(dataDir, 0o755);
    await writeFile(join(dataDir, 'secret.key'), 'the secret\n');
    await writeFile(join(dataDir, 'handlers', 'one'), 'executable\n');
    await mkdir(join(dataDir, 'given'));
    await writeFile(join(dataDir, 'given', 'file'), 'given\n');
    await mkdir(join(dataDir, 'build'));
    await chmod(join(dataDir, 'build'), 0o777);
    await mkdir(join(root, 'cargo'));
    await writeFile(join(root, 'cargo', 'credentials.toml'), 'the secret\n');
    await writeFile(join(root, 'cargo', 'program'), 'no secret\n');
    // By another path, as an operator may have configured it.
    await symlink(dataDir, join(root, 'link'));
    const secret = secretPaths(
      { DATA_DIR: join(root, 'link'), SQLITE_DIR: join(dataDir, 'sqlite') },
      { CARGO_HOME: join(root, 'cargo') },
    );
    sandbox = await openSandbox('required', createTestLog().log, secret);
  });
  after(() => rm(root, { recursive: true, force: true }));

  async function sh(script: string): Promise<ToolResult> {
    const build = join(dataDir, 'build');
    const confinement = sandbox.confine({
      readOnly: [
        [join(dataDir, 'handlers', 'one'), '/handler'],
        [join(dataDir, 'given'), join(dataDir, 'given')],
      ],
      writable: [[build, '/work']],
      network: false,
      tmpMb: 1,
      changesAttributes: true,
    });
    await confinement.handOver(build);
    return runTool({
      confinement,
      file: '/bin/sh',
      args: ['-c', script, 'sh', root],
      cwd: '/work',
      env: { PATH: '/usr/bin:/bin' },
      limits: TOOL_LIMITS,
      writable: [build],
    });
  }

  it('hides an installation below /usr/local from the sandbox, except for the files that are needed', async () => {
    const result = await sh(
      'cat /handler; echo mine > /work/file; cat /work/file; cd "$1"; ls data; cat data/given/file',
    );
    expect(result.stderr).to.equal('');
    expect(result.stdout).to.equal('executable\nmine\ngiven\ngiven\n');
  });

  it('lets no program read or write an installation below /usr/local by other paths to it', async () => {
    const { stdout, stderr } = await sh(
      'cd "$1"; ls -A link; cat data/secret.key link/secret.key cargo/credentials.toml; (: > data/new); cat cargo/program',
    );
    expect(stdout).to.equal('given\nno secret\n');
    expect(stderr).to.match(/Read-only file system/);
    expect(stdout + stderr).not.to.include('the secret');
  });
});
