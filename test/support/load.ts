/**
 * Load for tests of faults: clients with persistent connections that send one request after the other, and check the
 * status and body of every response. Unexpected responses are failures, with their start and end times.
 */
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { type Call, call } from './http.js';

/** One request, and its expected response. */
export interface LoadRequest extends Omit<Call, 'agent' | 'signal'> {
  readonly path: string;
  /** 200 unless given. */
  readonly status?: number;
  /** The body has to be this, or to match it. */
  readonly text: string | RegExp;
}

export interface LoadOptions {
  /** Base URLs. A client uses one until it refuses a connection, then the next one at once. */
  readonly targets: readonly string[];
  /** The request for a client number and its request number. */
  readonly request: (client: number, number: number) => LoadRequest;
  readonly clients?: number;
  /** Milliseconds between an answer and the next request of a client. */
  readonly pauseMs?: number;
}

/** A request that was not answered as it should be. Times are of `performance.now()`. */
export interface LoadFailure {
  readonly client: number;
  readonly sentAt: number;
  readonly failedAt: number;
  readonly path: string;
  /** Undefined when there was no answer. */
  readonly status: number | undefined;
  /** The body, or what happened to the connection. */
  readonly what: string;
}

/** Load that runs until it is stopped. */
export interface Load {
  /** Requests answered as they should be so far. */
  served(): number;
  failures(): readonly LoadFailure[];
  /** When the first of all requests that were sent after this moment was answered as it should be. */
  firstServedAfter(moment: number): number | undefined;
  /** Lets every client finish its request; resolves with the failures. */
  stop(): Promise<readonly LoadFailure[]>;
}

interface Served {
  readonly sentAt: number;
  readonly answeredAt: number;
}

const REFUSED = 'ECONNREFUSED';

/** Starts the clients; resolves when each has been answered once. */
export async function startLoad(options: LoadOptions): Promise<Load> {
  const { targets, request, clients = 8, pauseMs = 3 } = options;
  const served: Served[] = [];
  const failures: LoadFailure[] = [];
  let isOver = false;

  /** Sends it to the first target that accepts a connection, beginning with the client's own. */
  async function send(agent: Agent, own: number, { path, ...rest }: LoadRequest) {
    for (let tried = 0; ; tried++) {
      const target = (own + tried) % targets.length;
      try {
        return { target, answer: await call(`${targets[target]}${path}`, { ...rest, agent }) };
      } catch (error) {
        if (codeOf(error) !== REFUSED || tried + 1 >= targets.length) throw error;
      }
    }
  }

  async function once(client: number, number: number, agent: Agent, own: number): Promise<number> {
    const wanted = request(client, number);
    const sentAt = performance.now();
    const fail = (status: number | undefined, what: string) =>
      failures.push({ client, sentAt, failedAt: performance.now(), path: wanted.path, status, what });
    try {
      const { target, answer } = await send(agent, own, wanted);
      const { status, text } = answer;
      if (status === (wanted.status ?? 200) && isText(text, wanted.text))
        served.push({ sentAt, answeredAt: performance.now() });
      else fail(status, text);
      return target;
    } catch (error) {
      fail(undefined, `${codeOf(error)}: ${String(error)}`);
      return own;
    }
  }

  const begun: Promise<void>[] = [];
  const running = Array.from({ length: clients }, async (_, client) => {
    let hasBegun: () => void = () => undefined;
    begun.push(
      new Promise((resolve) => {
        hasBegun = resolve;
      }),
    );
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    let own = client % targets.length;
    for (let number = 0; !isOver; number++) {
      own = await once(client, number, agent, own);
      hasBegun();
      await delay(pauseMs);
    }
    agent.destroy();
  });
  await Promise.all(begun);
  return {
    served: () => served.length,
    failures: () => failures,
    firstServedAfter: (moment) =>
      served
        .filter(({ sentAt }) => sentAt >= moment)
        .reduce<number | undefined>(
          (first, { answeredAt }) => Math.min(first ?? answeredAt, answeredAt),
          undefined,
        ),
    stop: async () => {
      isOver = true;
      await Promise.all(running);
      return failures;
    },
  };
}

/** How many failures there are of each kind: `502 {...}` or what happened to the connection. */
export function outcomes(failures: readonly LoadFailure[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { status, what } of failures) {
    const outcome = status === undefined ? what : `${status} ${what}`;
    counts[outcome] = (counts[outcome] ?? 0) + 1;
  }
  return counts;
}

function isText(text: string, wanted: string | RegExp): boolean {
  return typeof wanted === 'string' ? text === wanted : wanted.test(text);
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'error';
}
