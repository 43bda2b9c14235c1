/** Type-checks many handlers in one run of rustc, with warnings denied. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DependencySets } from '../../../src/build/dependency-sets.js';
import { parseRustcOutput } from '../../../src/build/diagnostics.js';
import { linkingTo, targetOf } from '../../../src/build/prepared-sets.js';
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

/** Checks handlers and resolves with the diagnostics of rustc, none if all compile without warnings. */
export type CheckHandlers = (sources: readonly string[]) => Promise<readonly string[]>;

/** Finds the compiler, and builds the SDK unless it is cached. */
export async function openCompiler(): Promise<CheckHandlers> {
  const env = toolEnvironment();
  const toolchain = await findToolchain(HANDLER_PROFILE);
  const { log } = createTestLog();
  // As the tests' workers do, so that the SDK in the cache is the same.
  const sandbox = await openSandbox('auto', log);
  const root = join(BUILD_CACHE, 'sets');
  const sets = new DependencySets(
    { root, toolchain, sandbox, env, limits: LIMITS, crateSources: [], credentials: async () => [] },
    log,
  );
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
      const diagnostics = parseRustcOutput(result.stderr, new Set(['main.rs'])).map((diagnostic) =>
        JSON.stringify(diagnostic),
      );
      const failure = result.exitCode === 0 ? [] : [`rustc ${result.outcome} with ${result.exitCode}`];
      return [...diagnostics, ...failure];
    } finally {
      await folder.remove();
    }
  };
}

/** Writes each handler as a module of one program, whose `main` calls theirs: unused code would be a warning. */
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
