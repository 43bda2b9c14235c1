/**
 * The mixed traffic: requests of many kinds, streams, WebSockets, redeployments, stops, API calls and imports, each
 * checked and counted.
 */
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { call } from '../../test/support/http.js';
import { changeApi, importBundle, redeploy, stopAndStart } from './changes.js';
import { SHORT_STREAM, socketHandler } from './handlers.js';
import { BODY_LIMIT, ITEMS, type Landscape, type SoakEndpoint } from './landscape.js';
import type { Outcomes } from './outcomes.js';
import { talk } from './sockets.js';
import { readEndless, streamOf } from './streams.js';

export interface TrafficOptions {
  /** Clients with persistent connections. */
  readonly clients: number;
  /** Milliseconds between requests of a client. */
  readonly pauseMs: number;
  /** Milliseconds between changes of one kind: redeployments, stops, imports and so on. */
  readonly changeEveryMs: number;
}

/** Traffic that runs until it is stopped. */
export interface Traffic {
  /** Resolves when all started operations have ended. */
  stop(): Promise<void>;
}

/** Kinds of requests with their shares in percent. */
const KINDS: readonly (readonly [share: number, kind: RequestKind])[] = [
  [55, 'plain'],
  [10, 'pg'],
  [10, 'cache'],
  [8, 'sqlite'],
  [5, 'stream'],
  [5, 'unknown'],
  [3, 'method'],
  [2, 'panic'],
  [2, 'too large'],
];

type RequestKind =
  | 'plain'
  | 'pg'
  | 'cache'
  | 'sqlite'
  | 'stream'
  | 'unknown'
  | 'method'
  | 'panic'
  | 'too large';

/** Starts traffic. */
export function startTraffic(landscape: Landscape, outcomes: Outcomes, options: TrafficOptions): Traffic {
  const { endpoints } = landscape;
  let isOver = false;
  const agents: Agent[] = [];
  const repeat = async (pauseMs: number, work: (turn: number) => Promise<void>) => {
    for (let turn = 0; !isOver; turn++) {
      await work(turn);
      await delay(pauseMs);
    }
  };
  const clients = Array.from({ length: options.clients }, () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    agents.push(agent);
    return repeat(options.pauseMs, () => request(landscape, outcomes, agent));
  });
  // A new connection for each request.
  const churn = repeat(options.pauseMs * 2, () => request(landscape, outcomes));
  // Over redeployments and stops, too.
  const readers = Array.from({ length: options.clients }, () =>
    repeat(options.pauseMs, () =>
      outcomes.run('stream without end', () => readEndless(landscape, pick(endpoints), pickItem())),
    ),
  );
  const talkers = Array.from({ length: options.clients }, () =>
    repeat(options.pauseMs, () => outcomes.run('WebSocket', () => talk(landscape, pick(landscape.sockets)))),
  );
  // Every tenth endpoint is stopped and started; the others are redeployed.
  const stoppable = endpoints.filter((_, at) => at % 10 === 0);
  const replaceable = endpoints.filter((_, at) => at % 10 !== 0);
  const changes = [
    repeat(options.changeEveryMs, (turn) => redeploy(landscape, outcomes, pick(replaceable), turn)),
    repeat(options.changeEveryMs * 4, (turn) =>
      redeploy(landscape, outcomes, pick(landscape.sockets), turn, socketHandler),
    ),
    repeat(options.changeEveryMs * 2, () => stopAndStart(landscape, outcomes, pick(stoppable))),
    repeat(options.changeEveryMs, (turn) => changeApi(landscape, outcomes, turn)),
    repeat(options.changeEveryMs * 4, (turn) => importBundle(landscape, outcomes, turn)),
  ];
  return {
    stop: async () => {
      isOver = true;
      await Promise.all([...clients, churn, ...readers, ...talkers, ...changes]);
      for (const agent of agents) agent.destroy();
    },
  };
}

async function request(landscape: Landscape, outcomes: Outcomes, agent?: Agent): Promise<void> {
  const endpoint = pick(landscape.endpoints);
  const kind = pickKind();
  await outcomes.run(`request ${kind}`, () => send(landscape, endpoint, kind, agent));
}

async function send(
  { stack }: Landscape,
  endpoint: SoakEndpoint,
  kind: RequestKind,
  agent: Agent | undefined,
): Promise<void> {
  const n = pickItem();
  const url = `${stack.gatewayUrl}${kind === 'unknown' ? '/nowhere' : endpoint.path}/${n}`;
  const query = ['pg', 'cache', 'sqlite', 'stream', 'panic'].includes(kind) ? `?use=${kind}` : '';
  // The state before and after the request: it may be redeployed meanwhile.
  const before = { variants: [...endpoint.variants], mayBeDown: endpoint.mayBeDown };
  const method = kind === 'method' ? 'DELETE' : 'GET';
  const body = kind === 'too large' ? Buffer.alloc(BODY_LIMIT + 1) : undefined;
  const { status, text } = await call(url + query, {
    method,
    ...(agent && { agent }),
    ...(body && { body, headers: { 'content-length': body.length } }),
  });
  const got = `${status} ${text}`;
  if (status === 503 && (before.mayBeDown || endpoint.mayBeDown)) return;
  const wanted = STATUSES[kind];
  if (status !== wanted) throw new Error(`answered ${got} instead of ${wanted}`);
  if (wanted !== 200) return;
  const variants = [...before.variants, ...endpoint.variants];
  const answer = (variant: string) =>
    kind === 'stream' ? streamOf(`${variant} ${n}`, SHORT_STREAM) : `${variant} ${n}`;
  if (!variants.some((variant) => text === answer(variant))) throw new Error(`wrong answer: ${got}`);
}

/** The documented status of each kind. */
const STATUSES: Readonly<Record<RequestKind, number>> = {
  plain: 200,
  pg: 200,
  cache: 200,
  sqlite: 200,
  stream: 200,
  unknown: 404,
  method: 405,
  panic: 500,
  'too large': 413,
};

function pickKind(): RequestKind {
  let left = Math.random() * 100;
  for (const [share, kind] of KINDS) {
    left -= share;
    if (left < 0) return kind;
  }
  return 'plain';
}

function pickItem(): number {
  return Math.floor(Math.random() * ITEMS);
}

/** A random item. */
export function pick<T>(from: readonly T[]): T {
  const picked = from[Math.floor(Math.random() * from.length)];
  if (picked === undefined) throw new Error('there is nothing to pick from');
  return picked;
}
