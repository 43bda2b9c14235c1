/** Runs a command line: parses it, runs its command, and says why it failed. */
import { type Command, CommanderError } from 'commander';
import { currentSession, interruption } from './command.js';
import { isWithoutColour } from './environment.js';
import { CliError, EXIT, InterruptError, UsageError } from './errors.js';
import { Output, toCliError } from './output.js';
import { buildProgram } from './program.js';

/** @param argv what follows the name of the program */
export async function run(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endWithReader);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  const program = buildProgram();
  try {
    await program.parseAsync(withoutHelpOfUnknown(program, helpAtEnd(program, argv)), { from: 'user' });
    // A command that ends by itself when it is told to has been ended, too.
    if (interruption.signal.aborted) throw new InterruptError();
  } catch (thrown) {
    process.exitCode = report(thrown, argv, program);
  }
}

/** `edge logs | head` has all it wants. */
function endWithReader(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error;
  process.exit(EXIT.ok);
}

/** The second time, the user does not want to wait. */
function interrupt(): void {
  if (interruption.signal.aborted) process.exit(EXIT.interrupted);
  interruption.abort();
}

/** Prints why a command failed. @returns the exit code */
function report(thrown: unknown, argv: readonly string[], program: Command): number {
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return EXIT.ok;
    // Commander has printed the help of a command that needs another one behind it.
    if (thrown.code === 'commander.help') return EXIT.usage;
  }
  const session = currentSession();
  const json = argv.includes('--json');
  const out =
    session?.out ?? new Output({ json, colour: !argv.includes('--no-color') && !isWithoutColour() });
  const error = interruption.signal.aborted ? new InterruptError() : errorOf(thrown, helpOf(program, argv));
  if (error instanceof InterruptError && !out.json)
    out.note(`Interrupted.${session?.interruptHint ? ` ${session.interruptHint}` : ''}`);
  else out.failure(withInterruptHint(error, session?.interruptHint));
  return error.exitCode;
}

function errorOf(thrown: unknown, help: string): CliError {
  if (!(thrown instanceof CommanderError)) return toCliError(thrown);
  const [message = '', ...hints] = thrown.message.replace(/^error: /, '').split('\n');
  const hint = hints.join(' ').replace(/^\(|\)$/g, '');
  return new UsageError(message, hint === '' ? help : hint);
}

/** Where the help of the command is that a line names. */
function helpOf(program: Command, argv: readonly string[]): string {
  let at: Command = program;
  let path = program.name();
  for (const word of argv) {
    const next = at.commands.find((one) => one.name() === word);
    if (!next) continue;
    at = next;
    path += ` ${word}`;
  }
  return at.commands.length > 0
    ? `\`${path} --help\` lists the commands.`
    : `\`${path} --help\` says what it takes.`;
}

function withInterruptHint(error: CliError, interruptHint: string | undefined): CliError {
  if (!(error instanceof InterruptError) || interruptHint === undefined) return error;
  return new CliError(error.message, { ...error.facts, hint: interruptHint }, error.exitCode);
}

/** `edge help endpoint list` and `edge endpoint help list` are `edge endpoint list --help`. */
function helpAtEnd(program: Command, argv: readonly string[]): readonly string[] {
  for (const { word, at } of commandWords(program, argv)) {
    if (word === 'help') return [...argv.slice(0, at), ...argv.slice(at + 1), '--help'];
  }
  return argv;
}

/**
 * Commander prints the help of what is above a mistyped command when help is asked for: without that wish, it names
 * the nearest one and fails.
 */
function withoutHelpOfUnknown(program: Command, argv: readonly string[]): string[] {
  for (const { named } of commandWords(program, argv)) {
    if (!named) return argv.filter((word) => !['-h', '--help'].includes(word));
  }
  return [...argv];
}

/** The words of a line that should name commands, up to the first one that names none. */
function* commandWords(program: Command, argv: readonly string[]) {
  let group = program;
  for (const [at, word] of argv.entries()) {
    if (word.startsWith('-')) {
      // What follows is left to commander: the value of an option could be taken for a command.
      if (word === '--' || takesValue(group, word)) return;
      continue;
    }
    if (group.commands.length === 0) return;
    const named = group.commands.find((one) => one.name() === word || one.aliases().includes(word));
    yield { word, at, named };
    if (!named) return;
    group = named;
  }
}

function takesValue(group: Command, word: string): boolean {
  return group.options.some((option) => (option.long === word || option.short === word) && option.required);
}
