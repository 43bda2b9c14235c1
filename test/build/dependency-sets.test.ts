/** Dependency sets, with a script in the place of cargo: what it is asked for, and what is made of its answers. */
import { spawn } from 'node:child_process';
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { DependencySets, type PreparedSet } from '../../src/build/dependency-sets.js';
import { linkingTo, targetOf } from '../../src/build/prepared-sets.js';
import type { Toolchain } from '../../src/build/toolchain.js';
import type { Dependencies } from '../../src/model/crates.js';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.js';
import { HAS_UNTRUSTED_USERS, UNTRUSTED_GROUP, UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { type TempDir, tempDir } from '../support/temp.js';

// Builds the library "libserde.rlib" of the only direct dependency, and leaves a line for each run.
const CARGO = `#!/bin/sh
echo "$1" >> "\${0%/*}/runs"
case "$1" in
  build)
    mkdir -p "$CARGO_TARGET_DIR/release/deps"
    echo > "$CARGO_TARGET_DIR/release/deps/libserde.rlib"
    echo '{"reason":"compiler-artifact","package_id":"serde 1","target":{"kind":["lib"],"name":"serde"},"filenames":["'$CARGO_TARGET_DIR'/release/deps/libserde.rlib"]}'
    echo '{"reason":"build-script-executed","package_id":"sys 1","linked_paths":["native='$CARGO_TARGET_DIR'/out"]}'
    ;;
  metadata)
    echo '{"packages":[{"id":"serde 1","name":"serde"},{"id":"unused 1","name":"unused"}],"resolve":{"root":"handler 0","nodes":[{"id":"handler 0","deps":[{"name":"serde","pkg":"serde 1"},{"name":"unused","pkg":"unused 1"}]},{"id":"serde 1","deps":[]},{"id":"unused 1","deps":[]}]}}'
    ;;
esac
`;

describe('dependency sets', () => {
  let folder: TempDir;
  let toolchain: Toolchain;
  let sandbox: Sandbox;

  beforeEach(async () => {
    folder = await tempDir('sets');
    const sdk = join(folder.path, 'sdk');
    await mkdir(sdk);
    sandbox = await openSandbox('off', createTestLog().log);
    await writeFile(join(sdk, 'Cargo.lock'), 'version = 4\n');
    // The script may be run as another user.
    await writeFile(join(folder.path, 'runs'), '');
    await chmod(join(folder.path, 'runs'), 0o666);
    toolchain = {
      rustc: '/bin/true',
      cargo: await script(CARGO),
      version: 'rustc 1',
      host: 'x',
      sdk,
      sysroot: '/usr',
      fingerprint: 'f',
    };
  });
  afterEach(() => folder.remove());

  const script = async (text: string) => {
    const path = join(folder.path, 'cargo');
    await writeFile(path, text);
    await chmod(path, 0o755);
    return path;
  };
  const limits = {
    memoryMb: 4096,
    fileMb: 100,
    openFiles: 256,
    diskMb: 100,
    totalMemoryMb: 8192,
  };
  /** Without a sandbox: the script is none of its programs. */
  const open = (root = 'sets', signal?: AbortSignal, timeoutMs = 60_000) =>
    new DependencySets(
      {
        root: join(folder.path, root),
        toolchain,
        sandbox,
        env: { PATH: process.env['PATH'] ?? '' },
        crateSources: [],
        credentials: async () => [],
        limits: { ...limits, timeoutMs },
        ...(signal && { signal }),
      },
      createTestLog().log,
    );
  const runs = async () =>
    (await readFile(join(folder.path, 'runs'), 'utf8').catch(() => '')).split('\n').filter(Boolean);
  const messageOf = (result: PreparedSet) => (result.ok ? '' : result.diagnostics[0]?.message);
  const argsOf = (prepared: PreparedSet) => {
    if (!prepared.ok) throw new Error(`not prepared: ${JSON.stringify(prepared.diagnostics)}`);
    return linkingTo(prepared.libraries, targetOf(prepared.libraries));
  };

  it('links crates that were built, and leaves out those that were only resolved', async () => {
    const args = argsOf(await open().prepare({ dependencies: {}, async: false }));
    expect(args.filter((_, at) => args[at - 1] === '--extern')).to.satisfy(
      (externs: string[]) => externs.length === 1 && /^serde=\/.*\/libserde\.rlib$/.test(externs[0] ?? ''),
    );
    expect(args).to.satisfy((all: string[]) => all.some((arg) => /^native=\/.*\/target\/out$/.test(arg)));
  });

  it('prepares a set once, for all callers and any order of its dependencies', async () => {
    const sets = open();
    const dependencies: Dependencies = { regex: '1', chrono: '0.4' };
    await Promise.all([1, 2, 3].map(() => sets.prepare({ dependencies, async: false })));
    await sets.prepare({ dependencies: { chrono: '0.4', regex: '1' }, async: false });
    await open().prepare({ dependencies, async: false });
    expect(await runs()).to.deep.equal(['fetch', 'metadata', 'build']);
    await sets.prepare({ dependencies, async: true });
    expect(await runs()).to.have.length(6);
  });

  it('finds the libraries of a set when the data folder has moved', async () => {
    await open().prepare({ dependencies: {}, async: false });
    await rename(join(folder.path, 'sets'), join(folder.path, 'moved'));
    const args = argsOf(await open('moved').prepare({ dependencies: {}, async: false }));
    expect(await runs()).to.deep.equal(['fetch', 'metadata', 'build']);
    for (const library of args.flatMap((arg) => /^serde=(.+)$/.exec(arg)?.[1] ?? [])) {
      expect(library).to.include('/moved/');
      expect((await stat(library)).isFile()).to.equal(true);
    }
  });

  it('finds the libraries of a set when the data folder is reached by a link', async () => {
    await mkdir(join(folder.path, 'real'));
    await symlink(join(folder.path, 'real'), join(folder.path, 'link'));
    const args = argsOf(await open('link').prepare({ dependencies: {}, async: false }));
    expect(args.filter((_, at) => args[at - 1] === '--extern')).to.have.length(1);
  });

  it('leaves no set to the user who has built it: a later program may have the same', async () => {
    const spec = { dependencies: {}, async: false };
    const prepared = await open().prepare(spec);
    if (!prepared.ok) throw new Error('not prepared');
    const target = targetOf(prepared.libraries);
    const paths = [target, join(target, 'release/deps/libserde.rlib')];
    const owners = async () => (await Promise.all(paths.map((path) => stat(path)))).map(({ uid }) => uid);
    expect(await owners()).to.deep.equal([process.getuid?.(), process.getuid?.()]);
    if (!HAS_UNTRUSTED_USERS) return; // there is one user only
    // As earlier versions have left it.
    for (const path of paths) await chown(path, UNTRUSTED_USERS.first, UNTRUSTED_GROUP);
    await open().prepare(spec);
    expect(await owners()).to.deep.equal([0, 0]);
  });

  it('builds a set again whose libraries have been deleted', async () => {
    await open().prepare({ dependencies: {}, async: false });
    const [name = ''] = await readdir(join(folder.path, 'sets'));
    await rm(join(folder.path, 'sets', name, 'target'), { recursive: true });
    await open().prepare({ dependencies: {}, async: false });
    expect(await runs()).to.deep.equal(['fetch', 'metadata', 'build', 'fetch', 'metadata', 'build']);
  });

  it('returns the output of cargo when it fails, and tries again the next time', async () => {
    await script('#!/bin/sh\necho "error: no matching package named nope found" >&2\nexit 101\n');
    const sets = open();
    const failed = await sets.prepare({ dependencies: { nope: '1' }, async: false });
    expect(failed).to.deep.include({ ok: false, outcome: 'exited' });
    expect(failed.ok ? '' : failed.diagnostics[0]?.message).to.match(/no matching package named nope/);
    await script(CARGO);
    expect((await sets.prepare({ dependencies: { nope: '1' }, async: false })).ok).to.equal(true);
  });

  it('says that crates were not downloaded in time', async () => {
    await script('#!/bin/sh\nsleep 1000\n');
    const result = await open('sets', undefined, 100).prepare({ dependencies: { regex: '1' }, async: false });
    expect(result).to.deep.include({ ok: false, outcome: 'timed-out' });
    expect(messageOf(result)).to.match(/not downloaded within 0\.1 s \(CRATES_TIMEOUT_MS\)/);
  });

  it('ends a crate that uses the processor for too long, names it, and keeps those before it', async () => {
    const endless = 'echo "   Compiling unused v1.0.0" >&2; while :; do :; done';
    await script(CARGO.replace('    ;;\n', `    ${endless}\n    ;;\n`));
    const spec = { dependencies: { regex: '1' }, async: false };
    const sets = open('sets', undefined, 1_000);
    const preparing = sets.prepare(spec);
    await eventually(() =>
      expect(sets.preparing()[0]).to.include({ what: 'crates of handlers', crates: 1, of: 2 }),
    );
    const result = await preparing;
    expect(sets.preparing()).to.deep.equal([]);
    expect(result).to.deep.include({ ok: false, outcome: 'no-progress', built: 1 });
    expect(messageOf(result)).to.match(/^The crate unused was not built within 1 s of processor time/);
    expect(messageOf(result)).to.match(/The 1 of 2 crates that are built are kept\./);
    const [left = ''] = await readdir(join(folder.path, 'sets'));
    expect(left).to.match(/^\.making-/);
    await writeFile(join(folder.path, 'sets', left, 'target', 'left'), '');
    await script(CARGO);
    const prepared = await open().prepare(spec);
    if (!prepared.ok) throw new Error(messageOf(prepared));
    expect(await readdir(targetOf(prepared.libraries))).to.include('left');
  });

  it('leaves nothing of a set with a crate that does not compile', async () => {
    await script(CARGO.replace('    ;;\n', '    exit 101\n    ;;\n'));
    const result = await open().prepare({ dependencies: { regex: '1' }, async: false });
    expect(result).to.deep.include({ ok: false, outcome: 'exited', built: 1 });
    expect(await readdir(join(folder.path, 'sets'))).to.deep.equal([]);
  });

  it('keeps what is built however often a try takes too long', async () => {
    const spec = { dependencies: { regex: '1' }, async: false };
    const endless = (cargo: string) => cargo.replace('    ;;\n', '    while :; do :; done\n    ;;\n');
    await script(endless(CARGO));
    const impatient = () => open('sets', undefined, 300).prepare(spec);
    expect(await impatient()).to.deep.include({ outcome: 'no-progress', built: 1 });
    await script(endless(CARGO.replace('"compiler-artifact",', '"compiler-artifact","fresh":true,')));
    expect(await impatient()).to.deep.include({ outcome: 'no-progress', built: 0 });
    expect(await readdir(join(folder.path, 'sets'))).to.have.length(1);
  });

  it('begins with the libraries of the SDK, which are there', async () => {
    await open().prepare({ dependencies: {}, async: false });
    await script(
      CARGO.replace('  build)\n', `  build)\n    ls "$CARGO_TARGET_DIR/release/deps" >> "\${0%/*}/runs"\n`),
    );
    expect((await open().prepare({ dependencies: { regex: '1' }, async: false })).ok).to.equal(true);
    expect((await runs()).slice(3)).to.deep.equal(['fetch', 'metadata', 'build', 'libserde.rlib']);
  });

  it('ends cargo when a preparation is aborted, and goes on from there', async () => {
    const stop = new AbortController();
    await script(`#!/bin/sh\necho started >> "\${0%/*}/runs"\nsleep 1000\n`);
    const preparing = open('sets', stop.signal).prepare({ dependencies: { regex: '1' }, async: false });
    await eventually(async () => expect(await runs()).to.deep.equal(['started']));
    stop.abort();
    expect(await preparing).to.deep.include({ ok: false, outcome: 'aborted' });
    await script(CARGO);
    expect((await open().prepare({ dependencies: { regex: '1' }, async: false })).ok).to.equal(true);
    expect(await readdir(join(folder.path, 'sets'))).to.have.length(1);
  });

  describe('the dependency set of the SDK alone', () => {
    const spec = { dependencies: {}, async: false };
    /** Says that it has compiled a crate, and goes on only if an earlier run has left something. */
    const INTERRUPTED = CARGO.replace(
      '  build)\n',
      `  build)
    echo '{"reason":"compiler-artifact","package_id":"unused 1","target":{"kind":["lib"],"name":"unused"}}'
    [ -e "$CARGO_TARGET_DIR/left" ] || { echo > "$CARGO_TARGET_DIR/left"; sleep 1000; }
`,
    );
    const unfinished = async () =>
      (await readdir(join(folder.path, 'sets'))).filter((name) => name.startsWith('.making-'));
    /** Interrupts a build, and resolves with the name of its folder. */
    const interrupt = async () => {
      await script(INTERRUPTED);
      const stop = new AbortController();
      const sets = open('sets', stop.signal);
      const preparing = sets.prepare(spec);
      await eventually(() => expect(sets.preparing()[0]).to.include({ crates: 1, of: 2 }));
      await eventually(async () =>
        expect(await readdir(join(folder.path, 'sets', `${(await unfinished())[0]}`, 'target'))).to.include(
          'left',
        ),
      );
      stop.abort();
      expect((await preparing).ok).to.equal(false);
      const [name = ''] = await unfinished();
      return name;
    };

    it('continues the set of the SDK after an interruption', async () => {
      await interrupt();
      const sets = open();
      expect((await sets.prepare(spec)).ok).to.equal(true);
      expect(await unfinished()).to.deep.equal([]);
      expect(sets.preparing()).to.deep.equal([]);
    });

    it('takes an unfinished set over from a process that has ended, and leaves it to one that has not', async () => {
      const name = await interrupt();
      const other = spawn('sleep', ['1000']);
      const fields = (await readFile(`/proc/${other.pid}/stat`, 'utf8')).split(' ');
      const path = (file: string) => join(folder.path, 'sets', file);
      const others = name.replace(/^\.making-\d+-\d+/, `.making-${other.pid}-${fields[21]}`);
      await rename(path(name), path(others));
      const before = await runs();
      const sets = open();
      const preparing = sets.prepare(spec);
      await eventually(() => expect(sets.preparing()[0]).to.include({ crates: 0, of: null, problem: null }));
      expect(await unfinished()).to.deep.equal([others]);
      expect(await runs()).to.deep.equal(before);
      other.kill('SIGKILL');
      expect((await preparing).ok).to.equal(true);
      expect(await unfinished()).to.deep.equal([]);
    });

    it('builds the set of the SDK without a time limit, and tries again until it succeeds', async () => {
      await script('#!/bin/sh\nsleep 0.3; echo "error: no network" >&2\nexit 101\n');
      const sets = open('sets', undefined, 100);
      const preparing = sets.prepare(spec);
      await eventually(() =>
        expect(sets.preparing()[0]?.problem).to.match(/^Its crates cannot be downloaded.* tried again/),
      );
      await script(CARGO);
      expect((await preparing).ok).to.equal(true);
    });

    it('names the setting whose limit has ended the build of the set of the SDK', async () => {
      const large = 'for file in a b; do head -c 80M /dev/zero > "$CARGO_TARGET_DIR/$file"; done; sleep 1000';
      await script(CARGO.replace('  build)\n', `  build)\n    ${large}\n`));
      const sets = open();
      const preparing = sets.prepare(spec);
      await eventually(() =>
        expect(sets.preparing()[0]?.problem).to.match(
          /^The build wrote more than 100 MiB and was stopped \(COMPILE_DISK_MB\)\. It is tried again/,
        ),
      );
      await script(CARGO);
      expect((await preparing).ok).to.equal(true);
    });

    it('starts the set of the SDK over when the compiler rejects existing output', async () => {
      await interrupt();
      await script(
        CARGO.replace('  build)\n', '  build)\n    [ -e "$CARGO_TARGET_DIR/left" ] && exit 101\n'),
      );
      const sets = open();
      const preparing = sets.prepare(spec);
      await eventually(() => expect(sets.preparing()[0]?.problem).to.match(/^The compiler failed/));
      expect((await preparing).ok).to.equal(true);
    });
  });

  it('prepares a set again that is deleted while it is in use', async () => {
    const sets = open();
    const spec = { dependencies: {}, async: false };
    await sets.prepare(spec);
    await rm(join(folder.path, 'sets'), { recursive: true });
    expect((await sets.prepare(spec)).ok).to.equal(true);
    expect(await readdir(join(folder.path, 'sets'))).to.have.length(1);
  });

  it('deletes dependency sets that were not used for long', async () => {
    const sets = open();
    await sets.prepare({ dependencies: {}, async: false });
    await sets.prepare({ dependencies: { regex: '1' }, async: false });
    const root = join(folder.path, 'sets');
    const [used, unused] = (await readdir(root)).sort((left) => (left.startsWith('sync-') ? -1 : 1));
    const longAgo = new Date(Date.now() - 100_000);
    for (const name of [used, unused])
      await utimes(join(root, `${name}`, 'rustc-args.json'), longAgo, longAgo);
    await sets.prepare({ dependencies: {}, async: false });
    await sets.forgetUnused(50_000);
    expect(await readdir(root))
      .to.include(used)
      .and.not.include(unused);
  });
});
