/**
 * What every process entry does first: close what it was left, read the configuration, open the log, prepare an orderly
 * end.
 */
import { type Config, ConfigError, loadProcessConfig } from './config.js';
import { toError } from './errors.js';
import { closeInheritedFiles } from './inherited-files.js';
import { createLogger, type Logger } from './log.js';
import { Shutdown } from './shutdown.js';

/** What an entry starts with. */
export interface ProcessContext<C extends Config = ReturnType<typeof loadProcessConfig>> {
  readonly config: C;
  readonly log: Logger;
  readonly shutdown: Shutdown;
}

/**
 * Closes what is not ours, reads the configuration and makes the log; says what is wrong with the configuration, and ends
 * the process, if so.
 */
export function openProcess<C extends Config>(
  name: string,
  load: () => C,
): Pick<ProcessContext<C>, 'config' | 'log'> {
  closeInheritedFiles();
  let config: C;
  try {
    config = load();
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    process.stderr.write(`${name}: the configuration cannot be used.\n${thrown.message}\n`);
    process.exit(1);
  }
  return { config, log: createLogger(name, config.LOG_LEVEL) };
}

/** Runs an entry. A failure is logged, what was opened is closed, and the process ends with exit code 1. */
export async function startProcess(
  name: string,
  start: (context: ProcessContext) => Promise<void>,
): Promise<void> {
  await startProcessWith(name, loadProcessConfig, async (context) => {
    await start(context);
    return {};
  });
}

/** Like `startProcess`, with a configuration of another kind; what `start` resolves with goes to the parent process. */
export async function startProcessWith<C extends Config>(
  name: string,
  load: () => C,
  start: (context: ProcessContext<C>) => Promise<object>,
): Promise<void> {
  const { config, log } = openProcess(name, load);
  const shutdown = new Shutdown(log);
  try {
    const facts = await start({ config, log, shutdown });
    log.info('ready');
    // For the process that started this one, if it listens.
    process.send?.({ ...facts, type: 'ready' });
  } catch (thrown) {
    // Told to end while starting: what it still needed is closed already.
    if (shutdown.isEnding) return;
    log.fatal({ err: toError(thrown) }, 'could not start');
    process.exitCode = 1;
    await shutdown.run('could not start');
  }
}
