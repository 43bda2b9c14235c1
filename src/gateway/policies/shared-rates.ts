/** Counts of requests that all machines share, in Redis: one atomic script for each request and rule. */
import { Redis } from 'ioredis';
import type { RateDescriptor, RateStatus } from '../../contracts/front.js';
import type { Logger } from '../../util/log.js';
import { LogRateLimiter } from '../../util/log-rate-limiter.js';
import type { RateStatuses } from '../front/messages.js';

/** A request waits no longer for its count. */
const TIMEOUT_MS = 500;
const PREFIX = 'edge-gateway:rate';

/**
 * Callers of a rule that are counted at a time (up to twice as many, where windows overlap). A caller takes 150 bytes,
 * and those of a header can be made up.
 */
const MOST_CALLERS = 100_000;

/**
 * Takes one request of a window, which begins with the first one.
 * @returns whether it is admitted, how many were taken, and when the window ends, in milliseconds from now; nothing for
 * a new caller when there are too many
 */
const TAKE = `
local taken = tonumber(redis.call('GET', KEYS[1]) or '0')
if taken == 0 then
  local callers = redis.call('INCR', KEYS[2])
  if callers == 1 then redis.call('PEXPIRE', KEYS[2], ARGV[2]) end
  if callers > tonumber(ARGV[3]) then return false end
  redis.call('SET', KEYS[1], 1, 'PX', ARGV[2])
  return {1, 1, tonumber(ARGV[2])}
end
local ends = redis.call('PTTL', KEYS[1])
if taken >= tonumber(ARGV[1]) then return {0, taken, ends} end
return {1, redis.call('INCR', KEYS[1]), ends}
`;

interface WithTake {
  take(
    caller: string,
    rule: string,
    requests: number,
    windowMs: number,
    mostCallers: number,
  ): Promise<[admitted: number, count: number, endsMs: number] | null>;
}

export class SharedRates {
  readonly #redis: Redis & WithTake;
  readonly #warn: (error: unknown) => void;

  constructor(url: string, log: Logger) {
    const limiter = new LogRateLimiter(1, () => undefined);
    this.#warn = (error) => {
      if (limiter.take()) log.warn({ err: error }, 'rates cannot be counted in Redis');
    };
    const redis = new Redis(url, {
      // Who waits is told at once that it is away.
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      commandTimeout: TIMEOUT_MS,
    });
    redis.on('error', (error: Error) => this.#warn(error));
    redis.defineCommand('take', { numberOfKeys: 2, lua: TAKE });
    this.#redis = redis as Redis & WithTake;
  }

  /**
   * Counts a request by each of some rules, until one has no more.
   * @returns as many as were counted, with null for a caller beyond those that are counted; null when Redis is away
   */
  async take(rules: readonly RateDescriptor[]): Promise<RateStatuses | null> {
    const taken: (RateStatus | null)[] = [];
    try {
      for (const { key, rule, requests, windowMs } of rules) {
        const counted = await this.#redis.take(
          `${PREFIX}:${key}`,
          `${PREFIX}-callers:${rule}`,
          requests,
          windowMs,
          MOST_CALLERS,
        );
        if (!counted) {
          taken.push(null);
          continue;
        }
        const [admitted, count, endsMs] = counted;
        taken.push({ isAdmitted: admitted === 1, taken: count, endsMs: Math.max(0, endsMs) });
        if (admitted !== 1) break;
      }
    } catch (error) {
      // Also of the script: Redis may be full, or not allow it.
      this.#warn(error);
      return null;
    }
    return taken;
  }

  async close(): Promise<void> {
    this.#redis.disconnect();
  }
}
