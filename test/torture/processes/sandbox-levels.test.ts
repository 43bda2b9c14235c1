import { chmod, rm, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { actorHostSocket, metricsFolders, runDirectory } from '../../../src/bootstrap/run-directory.js';
import { processesOfUser } from '../../../src/sandbox/kill.js';
import { HAS_UNTRUSTED_USERS, isUserOfProgram, UNTRUSTED_GROUP } from '../../../src/util/untrusted-users.js';
import { eventually } from '../../support/eventually.js';
import { numbered } from '../../support/handler-sources.js';
import { BUILD_CACHE, must, type Stack, startStack } from '../../support/processes.js';

/** The SDK may have to be built, at a low priority, beside other tests. */
const BUILD_LIMIT_MS = 600_000;

describe('the level of the sandbox', () => {
  let stack: Stack;
  let count = 0;

  before(async () => {
    stack = await startStack({ processes: ['web', 'actor-host'], prepareData: closeToOthers });
  });
  after(() => stack.close());

  const health = async () => ((await must(stack.api.get('/api/health'))) as { sandbox: unknown }).sandbox;
  const run = async (env: Record<string, string>) => {
    const [worker, gateway] = [await stack.start('worker', env), await stack.start('gateway', env)];
    return [worker, gateway].map(({ logged }) => logged.lines.find((line) => 'sandbox' in line));
  };
  /** The output of a shell script that a handler runs. */
  const shell = async (path: string, script: string) =>
    String((await stack.gateway.post(path, script)).body)
      .trim()
      .split('\n');
  const stop = async () => {
    for (const name of ['gateway', 'worker'] as const) await stack.processes.get(name)?.end();
  };
  const serves = async () => {
    const path = `/level/${++count}`;
    await stack.deploy({ path, code: numbered(40_000 + count) });
    expect((await stack.gateway.get(path)).status).to.equal(200);
  };

  const levels = {
    namespaces: { setting: 'auto', logged: 30, message: /^sandbox works$/ },
    landlock: { setting: 'landlock', logged: 30, message: /^sandbox works$/ },
    limits: { setting: 'off', logged: 40, message: /^sandbox switched off/ },
  };
  for (const [level, { setting, logged, message }] of Object.entries(levels)) {
    it(`runs gateway and worker at the level ${level} with SANDBOX=${setting}`, async () => {
      await eventually(async () => expect(await health()).to.deep.equal({ gateway: null, worker: null }));
      for (const line of await run({ SANDBOX: setting })) {
        expect(line).to.include({ level: logged, sandbox: level });
        expect(line?.msg).to.match(message);
      }
      await eventually(async () => expect(await health()).to.deep.equal({ gateway: level, worker: level }));
      await serves();
      await stop();
    }).timeout(BUILD_LIMIT_MS);
  }

  it('assigns each handler and each build a separate user, as root without a sandbox', async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    const env = { SANDBOX: 'off' };
    const [, gateway] = [await stack.start('worker', env), await stack.start('gateway', env)];
    const runDir = await runDirectory(stack.dataDir);
    for (const path of ['/shell/a', '/shell/b']) {
      await stack.deploy({ path, method: 'POST', code: `${SHELL}\n// ${path}` });
    }
    const [a, b] = [await shell('/shell/a', 'id -u; id -G'), await shell('/shell/b', 'id -u; id -G')];
    const builds = [await shell('/shell/a', BUILD_USER), await shell('/shell/b', BUILD_USER)];
    const users = [a, b, ...builds];
    for (const [user, groups] of users) {
      expect(isUserOfProgram(Number(user)), user).to.equal(true);
      expect(groups).to.equal(String(UNTRUSTED_GROUP));
    }
    expect(new Set(users.map(([user]) => user)).size, 'distinct users').to.equal(users.length);
    expect(await shell('/shell/a', "awk '/^NoNewPrivs/ { print $2 }' /proc/self/status")).to.deep.equal([
      '1',
    ]);

    const closed = [
      ...['secret.key', 'artifacts', 'handlers', ''].map((name) => join(stack.dataDir, name)),
      ...[runDir, ...metricsFolders(runDir), actorHostSocket(runDir)],
      '/root',
    ];
    for (const path of closed) {
      const tries = `ls '${path}' && [ -r '${path}' ] && echo open; [ -w '${path}' ] && echo open; echo done`;
      const isSocket = path.endsWith('.sock');
      const output = await shell('/shell/a', isSocket ? `[ -w '${path}' ] && echo open; echo done` : tries);
      expect(output, path).to.deep.equal(['done']);
    }
    const processes = `kill -0 ${gateway.pid} || echo refused; kill -0 ${process.pid} || echo refused`;
    expect(await shell('/shell/a', processes)).to.deep.equal(['refused', 'refused']);
    const others = `for f in '${runDir}'/*; do echo "$f"; done; cd '${runDir}' && [ -w services/services.sock ] && echo served`;
    expect(await shell('/shell/a', others)).to.deep.equal([`${runDir}/*`, 'served']);

    const left = `( env -i setsid sleep 1000 > /dev/null 2>&1 & ) ; sleep 0.1; echo started`;
    expect(await shell('/shell/a', left)).to.deep.equal(['started']);
    const user = Number(a[0]);
    expect(processesOfUser(user).length).to.be.at.least(2);
    await stop();
    expect(processesOfUser(user)).to.deep.equal([]);
  }).timeout(BUILD_LIMIT_MS);
});

/** Runs the request's body. The variable BUILD is the state of the compiler that read this source. */
const SHELL = `
use rust_edge_gateway_sdk::prelude::*;
const BUILD: &str = include_str!("/proc/self/status");
fn handle(req: Request) -> Response {
    let script = req.body.unwrap_or_default();
    let run = std::process::Command::new("/bin/sh").arg("-c").arg(script).env("BUILD", BUILD).output();
    Response::text(200, String::from_utf8_lossy(&run.expect("a shell").stdout).to_string())
}
handler_loop!(handle);`;
/** Prints user and group of the compiler, which are the same as real, effective, saved and file system ids. */
const BUILD_USER = `echo "$BUILD" | awk '/^[UG]id:/ { print ($2 == $3 && $3 == $4 && $4 == $5) ? $2 : $0 }'`;

/** Root's folders for programs of other users are elsewhere then. */
async function closeToOthers(dataDir: string): Promise<() => Promise<void>> {
  await symlink(BUILD_CACHE, join(dataDir, 'build'));
  await chmod(dataDir, 0o700);
  const runDir = await runDirectory(dataDir);
  const isElsewhere = !runDir.startsWith(dataDir);
  return async () => {
    if (isElsewhere) await rm(dirname(runDir), { recursive: true });
  };
}
