/** What a command prints: results on stdout, everything else on stderr. */
import type { CompilerMessage } from './errors.js';
import { CliError } from './errors.js';
import { listOf, type Paint, painter, safeLine, safeText, tableOf } from './text.js';

const CLEAR_LINE = '\r\u001b[K';

export interface OutputOptions {
  /** One JSON value on stdout, or one a line for what goes on. */
  readonly json: boolean;
  readonly colour: boolean;
}

export class Output {
  readonly json: boolean;
  /** Paints text for stdout. */
  readonly paint: Paint;
  readonly #paintError: Paint;
  #hasProgress = false;
  readonly #warnings: string[] = [];

  constructor({ json, colour }: OutputOptions) {
    this.json = json;
    this.paint = painter(colour && process.stdout.isTTY === true && !json);
    this.#paintError = painter(colour && process.stderr.isTTY === true);
  }

  /** Prints a result: `data` for programs, what `show` prints for people. */
  result(data: unknown, show: () => void): void {
    this.#endProgress();
    this.#printWarnings();
    if (this.json) process.stdout.write(`${JSON.stringify(data, null, 2)}\n`);
    else show();
  }

  /** Prints one of many results that come one by one. */
  item(data: unknown, show: () => void): void {
    this.#endProgress();
    if (this.json) process.stdout.write(`${JSON.stringify(data)}\n`);
    else show();
  }

  /** Text of this program, for people. */
  line(text: string): void {
    this.#endProgress();
    process.stdout.write(`${text}\n`);
  }

  /** Text as it is, without a line break: what a handler has answered. */
  raw(text: string | Buffer): void {
    this.#endProgress();
    process.stdout.write(text);
  }

  table(head: readonly string[], rows: readonly (readonly string[])[]): void {
    this.raw(tableOf(head, rows, this.paint));
  }

  list(pairs: readonly (readonly [string, string])[]): void {
    this.raw(listOf(pairs, this.paint));
  }

  /** Says what goes on: a line that is rewritten on a terminal, else one line each. */
  progress(text: string): void {
    if (process.stderr.isTTY) {
      const width = (process.stderr.columns ?? 80) - 1;
      process.stderr.write(`${CLEAR_LINE}${safeLine(text).slice(0, width)}`);
      this.#hasProgress = true;
    } else if (!this.json) process.stderr.write(`${safeLine(text)}\n`);
  }

  /** Something that whoever runs the command should know. */
  note(text: string): void {
    this.#endProgress();
    process.stderr.write(`${safeText(text)}\n`);
  }

  /** What the API has warned of. */
  warnings(texts: readonly string[]): void {
    this.#warnings.push(...texts);
    // With `--json`, stderr has one object when a command fails: they are a part of it.
    if (!this.json) this.#printWarnings();
  }

  #printWarnings(): void {
    this.#endProgress();
    for (const text of this.#warnings.splice(0))
      process.stderr.write(`${this.#paintError('yellow', 'warning:')} ${safeText(text)}\n`);
  }

  /** Messages of the compiler, as it shows them. */
  diagnostics(messages: readonly CompilerMessage[]): void {
    this.#endProgress();
    for (const { level, rendered } of messages) {
      const [first = '', ...rest] = safeText(rendered.trimEnd()).split('\n');
      const headline = this.#paintError(level === 'error' ? 'red' : 'yellow', first);
      process.stderr.write(`${[headline, ...rest].join('\n')}\n\n`);
    }
  }

  /** Prints why a command has failed. */
  failure(thrown: CliError): void {
    this.#endProgress();
    const { code, hint, requestId, status, details, diagnostics } = thrown.facts;
    if (this.json) {
      const warnings = this.#warnings.length > 0 ? this.#warnings.splice(0) : undefined;
      const facts = { code, hint, status, request_id: requestId, details, diagnostics, warnings };
      process.stderr.write(`${JSON.stringify({ error: thrown.message, ...facts })}\n`);
      return;
    }
    if (diagnostics && diagnostics.length > 0) this.diagnostics(diagnostics);
    const message = diagnostics?.length ? 'The code does not compile' : thrown.message;
    const shown = code === undefined || code === 'usage' ? '' : ` (${code})`;
    process.stderr.write(`${this.#paintError('red', 'error:')} ${safeText(message.trimEnd())}${shown}\n`);
    if (hint !== undefined) process.stderr.write(`  ${safeText(hint)}\n`);
    if (requestId !== undefined) process.stderr.write(`  request id: ${safeLine(requestId)}\n`);
  }

  #endProgress(): void {
    if (!this.#hasProgress) return;
    process.stderr.write(CLEAR_LINE);
    this.#hasProgress = false;
  }
}

/** Converts a thrown value of any kind. An error that nobody has foreseen is named, and has its stack in `details`. */
export function toCliError(thrown: unknown): CliError {
  if (thrown instanceof CliError) return thrown;
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  return new CliError(error.message, { code: 'unexpected', details: { stack: error.stack } });
}
