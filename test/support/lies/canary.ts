/** Other services while servers lie, one in Rust, one in Node; and calls of those lied to. */
import { startRedisBackend } from '../backends/redis.js';
import type { Stack } from '../processes.js';
import { activeService, bind, connectAs, createEndpoint } from '../test-services.js';
import type { Lie } from './lie.js';

const CALLS = [
  [{ pool: 'database', op: 'query' }, '{"sql":"SELECT 1","params":[]}'],
  [{ pool: 'cache', op: 'command' }, '["PING"]'],
] as const;
const DEADLINE_MS = 3_000;

export interface Canary {
  readonly endpointId: string;
  /** One for each service; resolves with the error of the call, if it failed. */
  readonly calls: readonly (() => Promise<string | undefined>)[];
  close(): Promise<void>;
}

export async function startCanary(stack: Stack): Promise<Canary> {
  const endpointId = await createEndpoint(stack.api, '/canary');
  const redis = await startRedisBackend();
  await bind(
    stack.api,
    endpointId,
    await activeService(stack.api, 'sqlite', { path: 'canary.db' }),
    'database',
  );
  await bind(stack.api, endpointId, await activeService(stack.api, 'redis', redis.config), 'cache');
  const client = await connectAs(stack, endpointId);
  return {
    endpointId,
    calls: CALLS.map(([call, payload]) => async () => {
      const { ok, message = '' } = await client.send({ ...call, deadline_ms: DEADLINE_MS }, payload);
      return ok ? undefined : `${call.pool}: ${message}`;
    }),
    close: async () => {
      await client.close();
      await redis.remove();
    },
  };
}

/** Makes the call of a lie over a connection of its own, which may end with the process. */
export async function callLiar(stack: Stack, endpointId: string, pool: string, { call }: Lie) {
  const { operation: op, args, payload = '', timeoutMs: deadline_ms } = call;
  const client = await connectAs(stack, endpointId);
  const answer = await client
    .send({ pool, op, args, deadline_ms }, payload)
    .catch(({ message }: Error) => ({ ok: false, message }));
  await client.close();
  return answer;
}
