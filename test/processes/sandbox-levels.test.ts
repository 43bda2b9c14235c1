/** What confines code of strangers, as the processes say it: with bubblewrap, without it, and when it must be there. */
import { existsSync } from 'node:fs';
import { symlink } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { must, type ProcessName, type Stack, startStack } from '../support/processes.js';
import { type TempDir, tempDir } from '../support/temp.js';
import { numbered } from './sources.js';

/** What processes need of the PATH, but for bubblewrap. */
const PROGRAMS = ['cargo', 'rustc', 'cc', 'sh', 'cp', 'chmod', 'rm', 'setpriv'];

describe('the level of the sandbox', () => {
  let stack: Stack;
  let programs: TempDir;
  let count = 0;

  before(async () => {
    programs = await tempDir('programs');
    for (const name of PROGRAMS) await symlink(findProgram(name), join(programs.path, name));
    stack = await startStack({ processes: ['web'] });
  });
  after(async () => {
    await stack.close();
    await programs.remove();
  });

  const health = async () => ((await must(stack.api.get('/api/health'))) as { sandbox: unknown }).sandbox;
  const run = async (env: Record<string, string>) => {
    const [worker, gateway] = [await stack.start('worker', env), await stack.start('gateway', env)];
    return [worker, gateway].map(({ logged }) => logged.lines.find((line) => 'sandbox' in line));
  };
  const stop = async () => {
    for (const name of ['gateway', 'worker'] as const) await stack.processes.get(name)?.end();
  };
  const serves = async () => {
    const path = `/level/${++count}`;
    await stack.deploy({ path, code: numbered(40_000 + count) });
    expect((await stack.gateway.get(path)).status).to.equal(200);
  };

  it('is bubblewrap where it works', async () => {
    expect(await health()).to.deep.equal({ gateway: null, worker: null });
    for (const line of await run({ SANDBOX: 'auto' })) {
      expect(line).to.include({ level: 30, sandbox: 'bubblewrap' });
    }
    await eventually(async () =>
      expect(await health()).to.deep.equal({ gateway: 'bubblewrap', worker: 'bubblewrap' }),
    );
    await serves();
    await stop();
  }).timeout(180_000);

  const without: Record<string, readonly [env: () => Record<string, string>, warning: RegExp]> = {
    'where there is no bubblewrap': [
      () => ({ SANDBOX: 'auto', PATH: programs.path }),
      /no sandbox.*bubblewrap is not there: install it \(`apt-get install bubblewrap`\)/,
    ],
    'when it is switched off': [() => ({ SANDBOX: 'off' }), /sandbox switched off/],
  };
  for (const [when, [env, warning]] of Object.entries(without)) {
    it(`is that of resource limits ${when}, with a warning`, async () => {
      for (const line of await run(env())) {
        expect(line).to.include({ level: 40, sandbox: 'limits' });
        expect(line?.msg).to.match(warning);
      }
      await eventually(async () =>
        expect(await health()).to.deep.equal({ gateway: 'limits', worker: 'limits' }),
      );
      await serves();
      await stop();
    }).timeout(180_000);
  }

  it('is a reason not to start when bubblewrap is required and not there', async () => {
    for (const name of ['worker', 'gateway'] as const satisfies readonly ProcessName[]) {
      const launched = stack.launch(name, { SANDBOX: 'required', PATH: programs.path });
      launched.logged.expectErrors(/SANDBOX is \\"required\\", but bubblewrap is not there: install it/);
      const refusal = await launched.ready.then(
        () => undefined,
        (error: Error) => error.message,
      );
      expect(refusal, name).to.match(new RegExp(`${name} ended \\(1\\) before it was ready`));
      expect(launched.printed()).to.match(/SANDBOX is \\"required\\", but bubblewrap is not there/);
    }
  });
});

function findProgram(name: string): string {
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined) throw new Error(`${name} is not on the PATH`);
  return found;
}
