/**
 * A stack on which one handler is the attacker, while another endpoint, its neighbour, must answer every request.
 * `bench/hostile.ts` measures the latency.
 */
import { readdir } from 'node:fs/promises';
import { expect } from 'chai';
import type { SandboxLevel } from '../../../src/sandbox/confinement.js';
import { eventually } from '../eventually.js';
import { type Answer, type Call, call } from '../http.js';
import { type Load, outcomes, startLoad } from '../load.js';
import { processesWith } from '../process-state.js';
import { must, type ProcessName, type Stack, startStack } from '../processes.js';

const NEIGHBOUR = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response { Response::text(200, format!("neighbour {}", req.body.unwrap_or_default())) }
handler_loop!(handle);
`;

/** An endpoint whose handler performs attacks. */
export interface Attacker {
  readonly id: string;
  /** Performs an action. */
  do(action: string, options?: Call): Promise<Answer>;
  view(): Promise<{ status: string; last_error: string | null; running: boolean; pid: number | null }>;
  /** Crash reasons of its processes so far, from the gateway. */
  crashes(): string[];
  /** Resolves when it responds correctly again. */
  recovered(): Promise<void>;
}

export interface Neighbourhood {
  readonly stack: Stack;
  /**
   * Runs an attack with a new endpoint; afterwards the neighbour must be healthy, and no process or file of the
   * attacker may remain.
   */
  attack(
    code: string,
    limits: Record<string, number> | null,
    run: (attacker: Attacker) => Promise<void>,
  ): Promise<void>;
  /** Resolves after this many more responses of the neighbour. */
  neighbourServes(more: number): Promise<void>;
  close(): Promise<void>;
}

/** What to set to get a level on a machine where all work. */
export const SANDBOX_SETTING: Readonly<Record<SandboxLevel, string>> = {
  namespaces: 'required',
  landlock: 'landlock',
  limits: 'off',
};

/**
 * A user without any rights of its own, of whom there is nothing else on the machine: what holds for a gateway of root
 * has to hold for one of a user. Not as root, this process runs as a user already.
 */
const SOME_USER = 64_100;

/** The users whose gateways are attacked: that of this process, and if that is root, another one. */
export const USERS: readonly (number | undefined)[] =
  process.getuid?.() === 0 ? [undefined, SOME_USER] : [undefined];

/** For the names of tests. */
export function named(user: number | undefined): string {
  return user === undefined ? '' : ', of a gateway that is not root';
}

export async function startNeighbourhood(
  options: {
    env?: Record<string, string>;
    /** Beside the gateway; `web` and `worker` unless given. */
    processes?: readonly ProcessName[];
    /** `namespaces` unless given. It is required: no test can pass because there is none. */
    sandbox?: SandboxLevel;
    inheritedFile?: number;
    /** The user of the gateway and the actor host; that of this process unless given. */
    user?: number | undefined;
  } = {},
): Promise<Neighbourhood> {
  const { sandbox = 'namespaces' } = options;
  const stack = await startStack({
    processes: options.processes ?? ['web', 'worker'],
    ...(options.env && { env: options.env }),
    user: options.user,
    ...(options.inheritedFile !== undefined && { inheritedFile: options.inheritedFile }),
  });
  let load: Load;
  try {
    await stack.start('gateway', { SANDBOX: SANDBOX_SETTING[sandbox] });
    const levels = stack.processes.get('gateway')?.logged.lines.flatMap(({ sandbox }) => sandbox ?? []);
    expect(levels).to.deep.equal([sandbox]);
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
  }

  async function expectNothingLeft(id: string): Promise<void> {
    await eventually(async () => {
      expect(processesWith(`EDGE_ENDPOINT_ID=${id}`)).to.deep.equal([]);
      const folders = (await readdir(stack.runDir)).filter((name) => name.startsWith('h-'));
      expect(folders, 'of the neighbour').to.have.length(sandbox === 'namespaces' ? 0 : 1);
    });
  }

  return {
    stack,
    attack: async (code, limits, run) => {
      const path = `/attack/${++attacks}`;
      const id = await stack.deploy({ path, method: 'POST', code, limits });
      try {
        await run(attackerAt(stack, id, path));
        await expectNeighbourWell();
      } finally {
        await must(stack.api.delete(`/api/endpoints/${id}`));
      }
      await expectNothingLeft(id);
    },
    neighbourServes: async (more) => {
      const served = load.served();
      await eventually(() => expect(load.served()).to.be.at.least(served + more));
    },
    close: async () => {
      await load.stop();
      await stack.close();
    },
  };
}

function attackerAt(stack: Stack, id: string, path: string): Attacker {
  const act: Attacker['do'] = (action, options) =>
    call(`${stack.gatewayUrl}${path}?do=${action}`, { method: 'POST', ...options });
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
