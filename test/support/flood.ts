/** Many requests of one caller, for tests of limits: counted by the statuses of their answers. */
import { Agent } from 'node:http';
import { call } from './http.js';

export interface FloodOptions {
  /** Base URLs; as many clients send to each. */
  readonly targets: readonly string[];
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Of each target, with a persistent connection each. */
  readonly clients?: number;
  /** Requests to each target. */
  readonly requests: number;
  /** Called with the number of answers so far. */
  readonly onAnswer?: (answered: number) => void;
}

/** How many answers there were with each status. */
export type Statuses = Readonly<Record<number, number>>;

/** Sends them, each client one after the other; resolves with what each target answered. */
export async function flood(options: FloodOptions): Promise<Statuses[]> {
  const { targets, path, headers = {}, clients = 8, requests, onAnswer } = options;
  let answered = 0;
  return Promise.all(
    targets.map(async (target) => {
      const statuses: Record<number, number> = {};
      let left = requests;
      const client = async () => {
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        while (left-- > 0) {
          const { status } = await call(`${target}${path}`, { headers, agent });
          statuses[status] = (statuses[status] ?? 0) + 1;
          onAnswer?.(++answered);
        }
        agent.destroy();
      };
      await Promise.all(Array.from({ length: clients }, client));
      return statuses;
    }),
  );
}
