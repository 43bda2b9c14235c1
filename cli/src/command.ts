/** How a command of the tree is defined: its options, and the code that is loaded when it is run. */
import type { Command } from 'commander';
import { type CommonOptions, Session } from './session.js';

/** The code of a command. Arguments that were not given are undefined. */
export type Handler<Options> = (
  session: Session,
  options: Options & CommonOptions,
  // biome-ignore lint/suspicious/noExplicitAny: which arguments there are is said where the command is defined
  ...args: any[]
) => Promise<void>;

/** Aborted when the user ends the command. */
export const interruption = new AbortController();
let running: Session | undefined;

/** The session of the command that runs. */
export function currentSession(): Session | undefined {
  return running;
}

/** A command that only has others below it. */
export function group(parent: Command, name: string, description: string): Command {
  return withCommonOptions(parent.command(name)).description(description).helpCommand(false);
}

/** A command, without the options that all have. @param usage its name and arguments */
export function command(parent: Command, usage: string, description: string): Command {
  return parent.command(usage).description(description);
}

/**
 * Adds the options that all commands have, and says what a command does.
 * @param load loads its code: only that of the command that is run
 */
export function runs<Options>(defined: Command, load: () => Promise<Handler<Options>>): void {
  withCommonOptions(defined).action(async (...parameters: unknown[]) => {
    const args = parameters.slice(0, -2);
    const options = optionsOf(defined) as Options & CommonOptions;
    running = new Session(options, interruption.signal);
    const handle = await load();
    await handle(running, options, ...args);
  });
}

/** Options that all commands have; groups and the program itself have them, too. */
export function withCommonOptions(defined: Command): Command {
  return defined
    .option('--json', 'print JSON')
    .option('--context <name>', 'use the gateway of this context')
    .option('--no-color', 'print no colours');
}

/** Those of a command, and those in front of it; of several, the last one in the line counts. */
function optionsOf(defined: Command): CommonOptions {
  const own: CommonOptions = defined.opts();
  if (!defined.parent) return own;
  const before = optionsOf(defined.parent);
  return { ...before, ...own, color: own.color !== false && before.color !== false };
}
