/**
 * Crates that attack the machine that builds them, from a registry as any other. The sandbox is required, so that
 * nothing here passes without one.
 */
import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import type { ErrorCode } from '../../../src/errors.js';
import { removeTree } from '../../../src/sandbox/remove-tree.js';
import type { HttpResponse } from '../../support/client.js';
import { type CrateRegistry, startCrateRegistry } from '../../support/crate-registry.js';
import { eventually } from '../../support/eventually.js';
import { expectFailure } from '../../support/expect.js';
import { numbered } from '../../support/handler-sources.js';
import { CRATES, describeAttacks } from '../../support/hostile/attacks.js';
import { SANDBOX_SETTING } from '../../support/hostile/neighbourhood.js';
import { isRunning, processesWith } from '../../support/process-state.js';
import { BUILD_CACHE, must, type Stack, scratchOf, startStack } from '../../support/processes.js';
import { type TempDir, tempDir } from '../../support/temp.js';
import { attempts, greedyCrates, lookingCrate, type Targets, trapCrate } from './crates.js';

const SECRET = 'a-secret-of-this-machine';
const HANDLER = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::text(200, "served") }
handler_loop!(handle);
`;
/** Prepared sets are kept for later runs; a crate of this run is another than that of the last. */
const VERSION = `1.0.${Date.now()}`;
const PREPARATION_LIMIT_MS = 600_000;

describeAttacks('hostile crates', CRATES, (level, it) => {
  let stack: Stack;
  let registry: CrateRegistry;
  let outside: TempDir;
  let targets: Targets;
  const servers: Server[] = [];
  let reached = 0;
  let count = 0;
  /** Unfinished sets: the next try would go on from there. */
  let kept = 0;

  before(async function () {
    this.timeout(PREPARATION_LIMIT_MS);
    outside = await tempDir('outside');
    await writeFile(join(outside.path, 'secret'), SECRET);
    const listen = (at: object) =>
      new Promise<Server>((resolve) => {
        const server = createServer((socket) => {
          reached++;
          socket.destroy();
        });
        servers.push(server);
        server.listen(at, () => resolve(server));
      });
    const tcp = (await listen({ port: 0, host: '127.0.0.1' })).address() as AddressInfo;
    const named = join(outside.path, 'socket');
    await listen({ path: named });
    const abstract = `edge-attack-${process.pid}`;
    await listen({ path: `\0${abstract}` });

    targets = {
      read: [
        '/etc/passwd',
        '/etc/hostname',
        '/target/../etc/passwd',
        join(outside.path, 'secret'),
        '/cargo/credentials.toml',
        '/proc/1/root/etc/passwd',
        `/proc/${process.pid}/environ`,
        BUILD_CACHE,
        '/sys/kernel',
        '/dev/vda',
        '/dev/mem',
      ],
      write: [
        '/project/Cargo.toml',
        '/project/.cargo/config.toml',
        '/project/Cargo.lock',
        '/cargo/config.toml',
        '/cargo/registry/src/mine',
        '/.cargo/config.toml',
        '/sdk/Cargo.toml',
        '/toolchain/bin/rustc',
        '/usr/bin/mine',
        '/etc/mine',
        '/dev/shm/mine',
        '/target/../mine',
        join(BUILD_CACHE, 'mine'),
      ],
      tcp: [`127.0.0.1:${tcp.port}`, '1.1.1.1:53', '169.254.169.254:80'],
      unix: [named, `@${abstract}`, `@${abstract}${'\0'.repeat(107 - abstract.length)}`],
      kill: [process.pid, process.ppid],
    };
    registry = await startCrateRegistry([
      lookingCrate(VERSION, targets),
      trapCrate(VERSION, targets),
      ...greedyCrates(VERSION),
    ]);
    await writeFile(join(registry.cargoHome, 'credentials.toml'), `[registry]\ntoken = "${SECRET}"\n`);
    stack = await startStack({
      env: {
        SANDBOX: SANDBOX_SETTING[level],
        CARGO_HOME: registry.cargoHome,
        CARGO_REGISTRY_TOKEN: SECRET,
      },
      processes: ['web', 'worker'],
    });
    const { sandbox } = (await must(stack.api.get('/api/health'))) as { sandbox: { worker: string } };
    expect(sandbox.worker).to.equal(level);
    // Libraries for this level may have to be built. They are no set of an attack.
    await eventually(async () => {
      const { preparing } = (await must(stack.api.get('/api/health'))) as { preparing: unknown[] };
      expect(preparing).to.deep.equal([]);
    }, PREPARATION_LIMIT_MS);
  });

  after(async () => {
    await stack.close();
    await registry.close();
    for (const server of servers) server.close();
    for (const name of await attackSets()) await removeTree(join(BUILD_CACHE, 'sets', name));
    await outside.remove();
  });

  const attackSets = async () => {
    const found: string[] = [];
    for (const name of await readdir(join(BUILD_CACHE, 'sets'))) {
      const manifest = join(BUILD_CACHE, 'sets', name, 'project', 'Cargo.toml');
      if (/^edge-attack/m.test(await readFile(manifest, 'utf8').catch(() => ''))) found.push(name);
    }
    return found;
  };
  const compile = async (code: string, crate?: string): Promise<HttpResponse> => {
    const path = `/x${++count}`;
    const dependencies = crate === undefined ? {} : { [crate]: VERSION };
    const endpoint = { name: path, path, method: 'GET', domain: '*', code, dependencies };
    const { id } = (await must(stack.api.post('/api/endpoints', endpoint))) as { id: string };
    return stack.api.post(`/api/endpoints/${id}/compile`);
  };
  const workerPid = () => stack.processes.get('worker')?.pid ?? 0;
  const scratch = () => scratchOf(workerPid());
  const textOf = ({ body }: HttpResponse) => (body as { error: string }).error;

  const expectNothingReached = (answer: HttpResponse) => {
    expectFailure(answer, 'compile_failed', /REPORT/);
    const [, text = ''] = /REPORT\s*\n([\s\S]*?)\n\W*END/.exec(textOf(answer)) ?? [];
    const lines = text.split('\n').map((line) => line.replace(/^[|\s]+/, ''));
    expect(lines.filter((line) => line.startsWith('REACHED'))).to.deep.equal([]);
    expect(lines.filter((line) => line.startsWith('refused'))).to.have.length(attempts(targets));
    const variables = lines.find((line) => line.startsWith('variables ')) ?? '';
    expect(variables).to.match(/PATH=/);
    expect(variables).not.to.match(/DATABASE_URL|API_KEY|SECRET|TOKEN|proxy/i);
    // Without namespaces, it knows where its own folders are.
    const folders = level === 'namespaces' ? [BUILD_CACHE, process.cwd()] : [];
    for (const secret of [SECRET, registry.cargoHome, ...folders]) expect(variables).not.to.include(secret);
    expect(reached).to.equal(0);
    expect(isRunning(workerPid())).to.equal(true);
  };

  afterEach(async () => {
    // The next handler compiles, and nothing is left.
    await must(compile(numbered(20_000 + ++count)));
    await eventually(async () => expect(await readdir(await scratch())).to.deep.equal([]));
    const making = (await readdir(join(BUILD_CACHE, 'sets'))).filter((name) =>
      name.startsWith(`.making-${workerPid()}-`),
    );
    expect(making.length).to.be.at.most(kept);
    expect(processesWith(`.${workerPid()}.`)).to.deep.equal([]);
    expect(await readdir(outside.path)).to.have.members(['secret', 'socket']);
  });

  it('a hostile crate reaches nothing from its build script', async () => {
    expectNothingReached(await compile(HANDLER, 'edge-attack-look'));
    expect(await attackSets()).to.deep.equal([]);
  }).timeout(180_000);

  it('a hostile crate leaves no process, and nothing that affects later builds', async () => {
    await must(compile(HANDLER, 'edge-attack-traps'));
    const [set = ''] = await attackSets();
    const prepared = await readFile(join(BUILD_CACHE, 'sets', set, 'rustc-args.json'), 'utf8');
    expect(prepared).to.include('--extern').and.not.include('sysroot');
    const again = await must(compile(`// again\n${HANDLER}`, 'edge-attack-traps'));
    expect(again).to.include({ status: 'compiled' });
  }).timeout(300_000);

  it('a hostile crate reaches nothing from a macro', async () => {
    expectNothingReached(await compile(`edge_attack_traps::look!();\n${HANDLER}`, 'edge-attack-traps'));
  }).timeout(180_000);

  it('a hostile crate does not replace the executable of a handler by another file', async (reason) => {
    for (const macro of ['link', 'outside_link', 'names', 'folder', 'pipe', 'hole', 'nothing']) {
      const answer = await compile(`edge_attack_traps::${macro}!();\n${HANDLER}`, 'edge-attack-traps');
      expectFailure(answer, 'compile_failed', reason);
    }
    expectFailure(
      await compile(`edge_attack_traps::abort!();\n${HANDLER}`, 'edge-attack-traps'),
      'compile_failed',
      /The compiler was ended by SIG/,
    );
  }).timeout(180_000);

  it('a hostile crate leaves no process from a macro, and does not mislead the parser of the output', async () => {
    await must(compile(`edge_attack_traps::leave!();\n${HANDLER}`, 'edge-attack-traps'));
    await must(compile(`edge_attack_traps::cargo!();\n${HANDLER}`, 'edge-attack-traps'));
    const forged = await compile(`edge_attack_traps::forge!();\n${HANDLER}`, 'edge-attack-traps');
    expectFailure(forged, 'compile_failed', /forged \ufffd \ufffd/);
  }).timeout(180_000);

  describe('hostile crates that exhaust resources', () => {
    const restart = async (limits: Record<string, string>) => {
      await stack.processes.get('worker')?.end();
      await stack.start('worker', limits);
    };
    const ends = async (what: string, code: ErrorCode, message: RegExp, isKept = false) => {
      expectFailure(await compile(HANDLER, `edge-attack-${what}`), code, message);
      if (isKept) kept++;
      expect(await attackSets()).to.have.length(1 + kept); // that of the traps
    };
    before(() =>
      restart({
        COMPILE_MEMORY_MB: '1024',
        COMPILE_TOTAL_MEMORY_MB: '1024',
        COMPILE_DISK_MB: '256',
        COMPILE_PROCESSES: '200',
      }),
    );

    it('fails the build of a crate that starts too many processes', async (reason) => {
      await ends('fork', 'compile_failed', reason);
    }).timeout(180_000);

    it('fails the build of a crate that writes too much', async (reason) => {
      await ends('disk', 'compile_failed', reason);
    }).timeout(180_000);

    it('fails the build of a crate that uses too much memory', async (reason) => {
      await ends('memory', 'compile_failed', reason, true);
    }).timeout(180_000);

    it('fails the build of a crate that prints without end', async (reason) => {
      await ends('print', 'compile_failed', reason);
    }).timeout(180_000);

    it('removes the folders that a hostile crate leaves, deep and without permissions', async (reason) => {
      await ends('folders', 'compile_failed', reason);
    }).timeout(180_000);

    it('fails the build of a crate that takes too long', async (reason) => {
      await restart({ CRATES_TIMEOUT_MS: '20000' });
      await ends('never', 'crates_timeout', reason, true);
    }).timeout(180_000);
  });
});
