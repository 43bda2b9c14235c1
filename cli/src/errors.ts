/** Errors as people and programs get them: what is wrong, what to do, and the exit code. */

/** The exit codes of `edge`. `busy`: others are before, and the same command may succeed later (sysexits: TEMPFAIL). */
export const EXIT = { ok: 0, error: 1, usage: 2, busy: 75, interrupted: 130 } as const;

/** What else is known of an error. */
export interface ErrorFacts {
  /** A stable code: of the API, or one of this program. */
  readonly code?: string;
  /** What to do. */
  readonly hint?: string | undefined;
  /** HTTP status of the API's answer. */
  readonly status?: number;
  /** The id under which the log of the API has the request. */
  readonly requestId?: string | undefined;
  readonly details?: unknown;
  readonly diagnostics?: readonly CompilerMessage[];
}

/** What is used of a diagnostic of the compiler. */
export interface CompilerMessage {
  readonly level: string;
  readonly rendered: string;
}

/** An error whose message is for whoever runs the command. */
export class CliError extends Error {
  override readonly name: string = 'CliError';

  constructor(
    message: string,
    readonly facts: ErrorFacts = {},
    readonly exitCode: number = facts.code === 'apply_busy' ? EXIT.busy : EXIT.error,
  ) {
    super(message);
  }
}

/** The command was used in a wrong way: nothing was done. */
export class UsageError extends CliError {
  override readonly name = 'UsageError';

  constructor(message: string, hint?: string) {
    super(message, { code: 'usage', hint }, EXIT.usage);
  }
}

/** Ended by the user. */
export class InterruptError extends CliError {
  override readonly name = 'Interrupted';

  constructor() {
    super('Interrupted', { code: 'interrupted' }, EXIT.interrupted);
  }
}

/** What to do about errors of the API whose message does not say it. */
const HINTS: Readonly<Record<string, string>> = {
  forbidden: '`edge whoami` shows what the token may do; somebody who may do more can make another one.',
  no_gateway: 'Start a gateway process; `edge status` shows what runs.',
  no_worker: 'Start a worker process; `edge status` shows what runs.',
  no_actor_host: 'Start an actor-host process; `edge status` shows what runs.',
  database_unavailable: 'Try again when PostgreSQL is back.',
  route_taken: 'Change or delete the endpoint that has the route.',
  apply_conflict:
    '--adopt makes what belongs to no stack a part of this one; what another stack has made stays its own.',
  nothing_to_roll_back_to: '`edge versions` lists them; --version names one.',
  plan_changed: 'Run `edge diff` to see what the plan is now.',
  wait_timeout: 'It continues: look again in a while.',
  start_overtaken: 'Look at `edge versions` before you deploy again.',
};

/** What to do about a request that the API has refused for want of a token, or for the one that was sent. */
export function signInHint(url: string, hasToken: boolean): string {
  const made = `Tokens are made in the web UI: ${url}/ui/access/tokens`;
  return hasToken
    ? `The token is unknown, was revoked or has expired. \`edge login ${url}\` keeps another one, EDGE_TOKEN overrides it. ${made}`
    : `Run \`edge login ${url}\`, or set EDGE_TOKEN. ${made}`;
}

export function hintFor(code: string): string | undefined {
  return HINTS[code];
}
