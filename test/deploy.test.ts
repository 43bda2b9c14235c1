/** The systemd units in `deploy/`: they start what the Procfile starts, and give it the time it takes to end. */
import { access, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { execa } from 'execa';
import { FORCE_QUIT_MS } from '../src/bootstrap/shutdown.js';
import { loadProcessConfig } from '../src/config.js';
import { SETTINGS } from '../src/settings.js';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FOLDER = join(ROOT, 'deploy/systemd');
const ANALYZE = '/usr/bin/systemd-analyze';

describe('the systemd units', () => {
  const unit = (name: string) => readFile(join(FOLDER, `edge-gateway-${name}.service`), 'utf8');
  const settingOf = (text: string, key: string) => new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1];

  it('are one for each line of the Procfile, with its command', async () => {
    const procfile = await readFile(join(ROOT, 'Procfile'), 'utf8');
    const lines = [...procfile.matchAll(/^([\w-]+): node (\S+)$/gm)];
    const units = (await readdir(FOLDER)).filter((file) => file.endsWith('.service'));
    expect(units).to.have.members(lines.map(([, name]) => `edge-gateway-${name}.service`));
    for (const [, name = '', entry = ''] of lines) {
      expect(settingOf(await unit(name), 'ExecStart'), name).to.equal(`/usr/bin/node ${entry}`);
      await access(join(ROOT, entry));
    }
  });

  it('kill no process before its shutdown limit', async () => {
    for (const name of ['web', 'worker', 'gateway', 'actor-host']) {
      const text = await unit(name);
      expect(Number(settingOf(text, 'TimeoutStopSec')) * 1000, name).to.be.above(FORCE_QUIT_MS);
      expect(text)
        .to.match(/^KillMode=mixed$/m)
        .and.match(/^Restart=always$/m);
    }
  });

  it('leave gateway and worker what the sandbox needs', async () => {
    for (const name of ['worker', 'gateway']) {
      const inTheWay =
        /^(RestrictNamespaces|ProtectProc|ProcSubset|ProtectKernel\w+|SystemCallFilter|ProtectHostname|ProtectControlGroups)=/m;
      expect(await unit(name)).not.to.match(inTheWay);
      expect(await unit(name)).to.match(/^Delegate=cpu memory pids$/m);
    }
  });

  it('come with settings that can be used', async () => {
    const text = await readFile(join(FOLDER, 'edge-gateway.env'), 'utf8');
    const settings = Object.fromEntries(
      [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
    );
    expect(Object.keys(SETTINGS)).to.include.members(Object.keys(settings));
    expect(loadProcessConfig(settings)).to.include({
      DATA_DIR: '/var/lib/edge-gateway',
      SANDBOX: 'required',
    });
  });

  it('are accepted by systemd-analyze, where it is installed', async () => {
    const files = (await readdir(FOLDER)).filter((file) => /\.(service|target)$/.test(file));
    const hasSystemd = await access(ANALYZE).then(
      () => true,
      () => false,
    );
    if (hasSystemd) {
      const { stderr } = await execa(ANALYZE, ['verify', ...files], { cwd: FOLDER });
      expect(stderr).not.to.match(/edge-gateway/);
    }
    expect(files).to.include('edge-gateway.target');
  });
});
