/** Has many handlers checked by the real compiler, all in one run, with warnings denied. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DependencySets, linkingTo, targetOf } from '../../../src/build/dependency-sets.js';
import { parseRustcOutput } from '../../../src/build/diagnostics.js';
import { runTool } from '../../../src/build/run-tool.js';
import { HANDLER_PROFILE } from '../../../src/build/rustc.js';
import { findToolchain } from '../../../src/build/toolchain.js';
import { toolEnvironment } from '../../../src/config.js';
import { UNCONFINED } from '../../../src/sandbox/confinement.js';
import { openSandbox } from '../../../src/sandbox/sandbox.js';
import { createTestLog } from '../../support/log.js';
import { BUILD_CACHE } from '../../support/processes.js';
import { tempDir } from '../../support/temp.js';

const LIMITS = {
  timeoutMs: 300_000,
  memoryMb: 8192,
  fileMb: 1024,
  openFiles: 4096,
  diskMb: 8192,
  totalMemoryMb: 8192,
};

/** Checks handlers; resolves with what the compiler has to say about them, which should be nothing. */
export type CheckHandlers = (sources: readonly string[]) => Promise<readonly string[]>;

/** Finds the compiler and builds the SDK, unless an earlier run has. */
export async function openCompiler(): Promise<CheckHandlers> {
  const env = toolEnvironment();
  const toolchain = await findToolchain(HANDLER_PROFILE);
  const sandbox = await openSandbox('off', '', createTestLog().log);
  const root = join(BUILD_CACHE, 'sets');
  const sets = new DependencySets({ root, toolchain, sandbox, env, limits: LIMITS });
  const set = await sets.prepare({ dependencies: {}, async: false });
  if (!set.ok) throw new Error(`The SDK cannot be built: ${JSON.stringify(set.diagnostics)}`);

  return async (sources) => {
    const folder = await tempDir('generated');
    try {
      await writeAsModules(folder.path, sources);
      const args = [
        '--edition=2021',
        '--crate-type=bin',
        '--emit=metadata',
        '-Dwarnings',
        '--error-format=json',
      ];
      const result = await runTool({
        confinement: UNCONFINED,
        file: toolchain.rustc,
        args: [...args, ...linkingTo(set.libraries, targetOf(set.libraries)), 'main.rs'],
        cwd: folder.path,
        env,
        limits: LIMITS,
        writable: [],
      });
      const said = parseRustcOutput(result.stderr, 'main.rs').map((diagnostic) => JSON.stringify(diagnostic));
      const ended = result.exitCode === 0 ? [] : [`rustc ${result.outcome} with ${result.exitCode}`];
      return [...said, ...ended];
    } finally {
      await folder.remove();
    }
  };
}

/** Each handler as a module of one program, which calls what the macro has made of it. */
async function writeAsModules(folder: string, sources: readonly string[]): Promise<void> {
  await Promise.all(
    sources.map((source, at) =>
      writeFile(join(folder, `handler_${at}.rs`), `${source}\npub fn entry() {\n    main()\n}\n`),
    ),
  );
  const modules = sources.map((_, at) => `mod handler_${at};`);
  const calls = sources.map((_, at) => `    handler_${at}::entry();`);
  await writeFile(join(folder, 'main.rs'), [...modules, 'fn main() {', ...calls, '}', ''].join('\n'));
}
