/** What every process entry does first: read the configuration, open the log, prepare an orderly end. */
import { type Config, ConfigError, loadProcessConfig } from './config.js';
import { toError } from './errors.js';
import { createLogger, type Logger } from './log.js';
import { Shutdown } from './shutdown.js';

/** What an entry starts with. */
export interface ProcessContext {
  readonly config: Config & { readonly DATABASE_URL: string };
  readonly log: Logger;
  readonly shutdown: Shutdown;
}

/** Runs an entry. A failure is logged, what was opened is closed, and the process ends with exit code 1. */
export async function startProcess(
  name: string,
  start: (context: ProcessContext) => Promise<void>,
): Promise<void> {
  let config: ProcessContext['config'];
  try {
    config = loadProcessConfig();
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    process.stderr.write(`${name}: the configuration cannot be used.\n${thrown.message}\n`);
    process.exit(1);
  }
  const log = createLogger(name, config.LOG_LEVEL);
  const shutdown = new Shutdown(log);
  try {
    await start({ config, log, shutdown });
    log.info('ready');
    // For the process that started this one, if it listens.
    process.send?.({ type: 'ready' });
  } catch (thrown) {
    // Told to end while starting: what it still needed is closed already.
    if (shutdown.isEnding) return;
    log.fatal({ err: toError(thrown) }, 'could not start');
    process.exitCode = 1;
    await shutdown.run('could not start');
  }
}
