/** Common start of all processes: closes inherited files, reads the configuration, opens the log, sets up shutdown. */
import { type Config, ConfigError, loadProcessConfig, preparedProcess } from '../config.js';
import { toError } from '../errors.js';
import { createLogger, type Logger } from '../util/log.js';
import { makeDataDirectory } from './data-directory.js';
import { closeInheritedFiles } from './inherited-files.js';
import { Shutdown } from './shutdown.js';

/** The context of a process entry. */
export interface ProcessContext<C extends Config = ReturnType<typeof loadProcessConfig>> {
  readonly config: C;
  readonly log: Logger;
  readonly shutdown: Shutdown;
}

/**
 * Sets the modes of new files, whatever the umask of the shell is. Write permission on a socket allows connecting to
 * it. As root, other users run programs and need their files; private files have modes of their own.
 */
export function setUmask(): void {
  process.umask(process.getuid?.() === 0 ? 0o022 : process.umask() | 0o022);
}

/**
 * Closes inherited files, reads the configuration and opens the log. Exits with a message when the configuration is
 * invalid.
 * @param secrets names of members whose values are never logged
 */
export function openProcess<C extends Config>(
  name: string,
  load: () => C,
  secrets: Iterable<string> = [],
): Pick<ProcessContext<C>, 'config' | 'log'> {
  const starter = preparedProcess()?.starter;
  closeInheritedFiles(starter === undefined ? [] : [starter]);
  setUmask();
  let config: C;
  try {
    config = load();
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown;
    sayUnusable(name, thrown);
    process.exit(1);
  }
  const log = createLogger(name, config.LOG_LEVEL, secrets);
  process
    .removeAllListeners('warning')
    .on('warning', (warning) => log.warn({ err: warning }, warning.message));
  return { config, log };
}

function sayUnusable(name: string, error: ConfigError): void {
  process.stderr.write(`${name}: the configuration cannot be used.\n${error.message}\n`);
}

/**
 * Runs an entry. On failure, logs the error, runs the shutdown steps, and exits with code 1.
 * @param secrets names of members whose values are never logged
 */
export async function startProcess(
  name: string,
  start: (context: ProcessContext) => Promise<void>,
  secrets: Iterable<string> = [],
): Promise<void> {
  const run = async (context: ProcessContext) => {
    await start(context);
    return {};
  };
  await startProcessWith(name, loadProcessConfig, run, secrets);
}

/** Like `startProcess`, with another configuration; the result of `start` is sent to the parent process. */
export async function startProcessWith<C extends Config>(
  name: string,
  load: () => C,
  start: (context: ProcessContext<C>) => Promise<object>,
  secrets: Iterable<string> = [],
): Promise<void> {
  const { config, log } = openProcess(name, load, secrets);
  const shutdown = new Shutdown(log);
  const prepared = preparedProcess();
  for (const { level, details, message } of prepared?.notes ?? []) log[level](details, message);
  try {
    if (!prepared) await makeDataDirectory(config.DATA_DIR);
    const facts = await start({ config, log, shutdown });
    log.info('ready');
    // A parent with an IPC channel is told.
    process.send?.({ ...facts, type: 'ready' });
  } catch (thrown) {
    // The start failed because shutdown has begun and closed its resources.
    if (shutdown.isEnding) return;
    if (thrown instanceof ConfigError) sayUnusable(name, thrown);
    else log.fatal({ err: toError(thrown) }, 'could not start');
    process.exitCode = 1;
    await shutdown.run('could not start');
  }
}
