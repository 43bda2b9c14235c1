/** Runs a command line: parses it, runs its command, and says why it failed. */
import { type Command, CommanderError } from 'commander';
import { currentSession, interruption } from './command.js';
import { isWithoutColour } from './environment.js';
import { CliError, EXIT, Interrupted, UsageError } from './errors.js';
import { Output, toCliError } from './output.js';
import { buildProgram } from './program.js';

/** @param argv what follows the name of the program */
export async function run(argv: readonly string[]): Promise<void> {
  for (const stream of [process.stdout, process.stderr]) stream.on('error', endWithReader);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  const program = buildProgram();
  try {
    await program.parseAsync(withoutHelpOfUnknown(program, helpAtEnd(argv)), { from: 'user' });
    // A command that ends by itself when it is told to has been ended, too.
    if (interruption.signal.aborted) throw new Interrupted();
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
  const error = interruption.signal.aborted ? new Interrupted() : errorOf(thrown, helpOf(program, argv));
  if (error instanceof Interrupted && !out.json)
    out.note(`Interrupted.${session?.afterwards ? ` ${session.afterwards}` : ''}`);
  else out.failure(withAfterwards(error, session?.afterwards));
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

function withAfterwards(error: CliError, afterwards: string | undefined): CliError {
  if (!(error instanceof Interrupted) || afterwards === undefined) return error;
  return new CliError(error.message, { ...error.facts, hint: afterwards }, error.exitCode);
}

/** `edge help endpoint list` is `edge endpoint list --help`: commander looks at one word. */
function helpAtEnd(argv: readonly string[]): readonly string[] {
  const [first, ...rest] = argv;
  return first === 'help' && rest.length > 0 ? [...rest, '--help'] : argv;
}

/**
 * Commander prints the help of what is above a mistyped command when help is asked for: without that wish, it names
 * the nearest one and fails.
 */
function withoutHelpOfUnknown(program: Command, argv: readonly string[]): string[] {
  let at: Command = program;
  for (const word of argv) {
    if (word.startsWith('-')) {
      if (word === '--') break;
      if (takesValue(at, word)) return [...argv];
      continue;
    }
    if (at.commands.length === 0) break;
    const next = at.commands.find((one) => one.name() === word || one.aliases().includes(word));
    if (!next) return argv.filter((one) => !['-h', '--help'].includes(one));
    at = next;
  }
  return [...argv];
}

/** An option whose value could be taken for a command: it is left to commander. */
function takesValue(at: Command, word: string): boolean {
  return at.options.some((option) => (option.long === word || option.short === word) && option.required);
}
