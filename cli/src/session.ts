/** What a run of a command works with: its output, the API, and the wish of the user to end it. */
import { ApiClient } from './client.js';
import { type Access, accessOf } from './config.js';
import { isWithoutColour } from './environment.js';
import { CliError } from './errors.js';
import { Output } from './output.js';
import { type WaitedCrates, withPreparationProgress } from './preparing.js';

/** Options that all commands have. */
export interface CommonOptions {
  readonly json?: boolean;
  readonly context?: string;
  /** False with `--no-color`. */
  readonly color?: boolean;
}

export class Session {
  readonly out: Output;
  readonly #contextName: string | undefined;
  /** Aborted when the user ends the command. */
  readonly signal: AbortSignal;
  #access: Access | undefined;
  #api: ApiClient | undefined;
  #interruptHint: string | undefined;

  constructor(options: CommonOptions, signal: AbortSignal) {
    this.out = new Output({
      json: options.json === true,
      colour: options.color !== false && !isWithoutColour(),
    });
    this.#contextName = options.context;
    this.signal = signal;
  }

  /** The gateway that the command talks to. */
  get access(): Access {
    this.#access ??= accessOf(this.#contextName);
    return this.#access;
  }

  /** Talks to this gateway from now on. */
  use(access: Access): void {
    this.#access = access;
    this.#api = undefined;
  }

  get api(): ApiClient {
    this.#api ??= new ApiClient(this.access, this.signal);
    return this.#api;
  }

  /** A client for this gateway. @param signal ends its requests; that of the session unless given */
  apiAt(access: Access, signal = this.signal): ApiClient {
    return new ApiClient(access, signal);
  }

  /** Sets what the command says when the user interrupts it now: what the server continues; undefined: nothing. */
  setInterruptHint(text: string | undefined): void {
    this.#interruptHint = text;
  }

  get interruptHint(): string | undefined {
    return this.#interruptHint;
  }
}

/** Awaits a request that the server continues when the user interrupts the command. */
export async function withInterruptHint<T>(
  session: Session,
  text: string,
  work: Promise<T>,
  crates?: WaitedCrates,
): Promise<T> {
  session.setInterruptHint(text);
  try {
    return await withPreparationProgress(session, work, crates);
  } finally {
    if (!session.signal.aborted) session.setInterruptHint(undefined);
  }
}

export function isCode(thrown: unknown, code: string): boolean {
  return thrown instanceof CliError && thrown.facts.code === code;
}
