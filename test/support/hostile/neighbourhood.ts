/**
 * A stack on which one endpoint is attacked from within while another, its neighbour, has to answer every request as if
 * nothing were going on.
 */
import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import { runDirectory } from '../../../src/run-directory.js';
import { eventually } from '../eventually.js';
import { type Answer, type Call, call } from '../http.js';
import { type Load, outcomes, startLoad } from '../load.js';
import { processesWith } from '../process-state.js';
import { must, type ProcessName, type Stack, startStack } from '../processes.js';

/** No request of the neighbour may take as long. */
const NEIGHBOUR_LIMIT_MS = 1_000;
/** The promise: while an attack goes on, times of the neighbour are no more than so many times those before it. */
const NEIGHBOUR_RATIO = 2;
/** A turn of the scheduler for each handler that wants the same core: more than the neighbour takes by itself, in milliseconds. */
const MEDIAN_ALLOWANCE_MS = 20;
/** The few slowest requests also meet what else the machine does. `npm run bench -- hostile` measures without allowances. */
const P99_ALLOWANCE_MS = 50;
/** So many requests say what is usual. */
const REQUESTS_BEFORE = 100;
/** An attack that is over sooner says nothing about the times of others. */
const LONG_ENOUGH_MS = 1_000;
/** One that slows the neighbour down is done again, in case it was something else: most of so many have to keep the promise. */
const ROUNDS = 3;

const NEIGHBOUR = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response { Response::text(200, format!("neighbour {}", req.body.unwrap_or_default())) }
handler_loop!(handle);
`;

/** An endpoint whose handler does what it is told. */
export interface Attacker {
  readonly id: string;
  /** Has it do something. */
  do(deed: string, options?: Call): Promise<Answer>;
  view(): Promise<{ status: string; last_error: string | null; running: boolean; pid: number | null }>;
  /** Why its processes crashed so far, as the gateway says. */
  crashes(): string[];
  /** Resolves when it answers again as it should. */
  recovered(): Promise<void>;
}

export interface Neighbourhood {
  readonly stack: Stack;
  /** Runs an attack with an endpoint of its own; then the neighbour must be well, and nothing of the attacker left. */
  attack(
    code: string,
    limits: Record<string, number> | null,
    run: (attacker: Attacker) => Promise<void>,
  ): Promise<void>;
  close(): Promise<void>;
}

export async function startNeighbourhood(
  options: {
    env?: Record<string, string>;
    /** Beside the gateway; `web` and `worker` unless given. */
    processes?: readonly ProcessName[];
    /** `required` unless given: no test can pass because there is none. */
    sandbox?: 'off';
    inheritedFile?: number;
  } = {},
): Promise<Neighbourhood> {
  const stack = await startStack({
    processes: options.processes ?? ['web', 'worker'],
    ...(options.env && { env: options.env }),
    ...(options.inheritedFile !== undefined && { inheritedFile: options.inheritedFile }),
  });
  let load: Load;
  try {
    await stack.start('gateway', { SANDBOX: options.sandbox ?? 'required' });
    const levels = stack.processes.get('gateway')?.logged.lines.flatMap(({ sandbox }) => sandbox ?? []);
    expect(levels).to.deep.equal([options.sandbox === 'off' ? 'limits' : 'bubblewrap']);
    await stack.deploy({ path: '/neighbour', method: 'POST', code: NEIGHBOUR });
    load = await startLoad({
      targets: [stack.gatewayUrl],
      clients: 2,
      pauseMs: 10,
      request: (client, number) => {
        const body = `${client}/${number}`;
        return { path: '/neighbour', method: 'POST', body, text: `neighbour ${body}` };
      },
    });
  } catch (error) {
    await stack.close();
    throw error;
  }
  let attacks = 0;

  async function expectNeighbourWell(): Promise<void> {
    const served = load.served();
    await eventually(() => expect(load.served()).to.be.above(served));
    expect(outcomes(load.failures())).to.deep.equal({});
    expect(load.slowest()).to.be.below(NEIGHBOUR_LIMIT_MS);
  }

  /** How the times of the neighbour from one moment on compare with those before, if they are worse than promised. */
  function slowdown(before: readonly number[], from: number, to: number): string | undefined {
    if (to - from < LONG_ENOUGH_MS) return undefined;
    const during = load.durations(from, to);
    const isWithin = (part: number, allowanceMs: number) =>
      quantile(during, part) <= NEIGHBOUR_RATIO * quantile(before, part) + allowanceMs;
    if (isWithin(0.5, MEDIAN_ALLOWANCE_MS) && isWithin(0.99, P99_ALLOWANCE_MS)) return undefined;
    return `before: ${described(before)}; during: ${described(during)}`;
  }

  /** Does an attack once. @returns how it slowed the neighbour down, if more than promised */
  async function attackOnce(...[code, limits, run]: Parameters<Neighbourhood['attack']>) {
    const path = `/attack/${++attacks}`;
    const id = await stack.deploy({ path, method: 'POST', code, limits });
    let slower: string | undefined;
    try {
      const quietFrom = performance.now();
      const served = load.served();
      await eventually(() => expect(load.served()).to.be.at.least(served + REQUESTS_BEFORE));
      const from = performance.now();
      await run(attackerAt(stack, id, path));
      slower = slowdown(load.durations(quietFrom, from), from, performance.now());
      await expectNeighbourWell();
    } finally {
      await must(stack.api.delete(`/api/endpoints/${id}`));
    }
    await expectNothingLeft(id);
    return slower;
  }

  async function expectNothingLeft(id: string): Promise<void> {
    const runDir = await runDirectory(stack.dataDir);
    await eventually(async () => {
      expect(processesWith(`EDGE_ENDPOINT_ID=${id}`)).to.deep.equal([]);
      const folders = (await readdir(runDir)).filter((name) => name.startsWith('handler-'));
      expect(folders, 'of the neighbour').to.have.length(options.sandbox === 'off' ? 1 : 0);
    });
  }

  return {
    stack,
    attack: async (code, limits, run) => {
      const slower: string[] = [];
      for (let round = 1; slower.length <= ROUNDS / 2; round++) {
        const found = await attackOnce(code, limits, run);
        if (found !== undefined) slower.push(found);
        if (slower.length < round / 2) return;
      }
      throw new Error(`The neighbour is slowed down. ${slower.join('\n')}`);
    },
    close: async () => {
      await load.stop();
      await stack.close();
    },
  };
}

function attackerAt(stack: Stack, id: string, path: string): Attacker {
  const act: Attacker['do'] = (deed, options) =>
    call(`${stack.gatewayUrl}${path}?do=${deed}`, { method: 'POST', ...options });
  return {
    id,
    do: act,
    view: async () =>
      (await must(stack.api.get(`/api/endpoints/${id}`))) as Awaited<ReturnType<Attacker['view']>>,
    crashes: () =>
      (stack.processes.get('gateway')?.logged.lines ?? [])
        .filter(({ msg, endpoint_id }) => msg === 'handler crashed' && endpoint_id === id)
        .map(({ reason }) => String(reason)),
    recovered: () =>
      eventually(async () => {
        const { status, text } = await act('nothing');
        expect(status, text).to.equal(200);
        expect(text).to.be.oneOf(['done', 'raw']);
      }),
  };
}

/** Of durations with the fastest first; milliseconds. */
function quantile(durations: readonly number[], part: number): number {
  return (
    durations[Math.min(durations.length - 1, Math.floor(durations.length * part))] ?? Number.POSITIVE_INFINITY
  );
}

function described(durations: readonly number[]): string {
  const [median, p99] = [0.5, 0.99].map((part) => `${quantile(durations, part).toFixed(1)} ms`);
  return `${durations.length} requests, median ${median}, p99 ${p99}`;
}
