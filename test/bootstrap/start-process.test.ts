/** How the entries of processes begin. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';

/** Runs an entry to its end. */
async function run(entry: string, env: Record<string, string>) {
  const { DATABASE_URL, ...inherited } = process.env;
  const child = spawn(process.execPath, [fileURLToPath(new URL(`../../${entry}.js`, import.meta.url))], {
    env: { ...inherited, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, output };
}

describe('a process whose configuration cannot be used', () => {
  for (const entry of ['web', 'gateway', 'actor-host', 'release']) {
    it(`${entry} reports that its configuration cannot be used, and exits`, async () => {
      const { code, output } = await run(`src/processes/${entry}`, {});
      expect(code).to.equal(1);
      expect(output).to.match(
        /^[a-z-]+: the configuration cannot be used\.\nDATABASE_URL: is not set\. .*\n$/,
      );
    });
  }

  it('postgres reports that its configuration cannot be used, and exits', async () => {
    const { code, output } = await run('src/processes/postgres', { LOG_LEVEL: 'loud' });
    expect(code).to.equal(1);
    expect(output).to.match(/^postgres: the configuration cannot be used\.\nLOG_LEVEL: must be one of .*\n$/);
  });

  for (const entry of [
    'src/processes/web',
    'src/processes/gateway',
    'src/processes/actor-host',
    'jobs/worker',
  ]) {
    it(`${entry} reports at once that DATA_DIR cannot be used`, async () => {
      const env = { DATABASE_URL: 'postgres://127.0.0.1:1/none', DATA_DIR: '/proc/nope' };
      const { code, output } = await run(entry, env);
      expect(code).to.equal(1);
      expect(output).to.match(/the configuration cannot be used\.\nDATA_DIR: \/proc\/nope cannot be used: /);
      expect(output).not.to.match(/"level":[56]0/);
    });
  }
});
