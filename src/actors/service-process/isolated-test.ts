/** Tests connections, each in a process of its own: what answers may be anything. */
import pTimeout from 'p-timeout';
import type { ConnectionTest } from '../../model/connection-test.js';
import type { Log } from '../../util/log.js';
import { LogRateLimiter } from '../../util/log-rate-limiter.js';
import { Turns } from '../../util/turns.js';
import { ServiceError } from '../service-error.js';
import type { TestRequest } from './messages.js';
import { memoryOf, missingProgram } from './programs.js';
import { ServiceProcess } from './service-process.js';
import { place } from './sqlite-paths.js';
import type { Starter } from './starter.js';

/** Each takes a processor for a moment, and some 50 MiB. There may be as many more for owners that have none. */
const MAX_TESTS = 8;
/** Longer than an owner that has none waits for one of those. */
const MAX_WAIT_MS = 5_000;
/** The process keeps the time limit of the test; this is for its start, and for one that does not keep it. */
const GRACE_MS = 2_000;
const MAX_LOG_LINES_PER_SECOND = 20;

/** Most tests of one owner that may wait for their turn. */
const MAX_WAITING = 64;

const turns = new Turns({ places: MAX_TESTS, beyond: MAX_TESTS });

/**
 * Connects, makes one round trip, and closes the connection. Never fails.
 * @param owner whose turn it takes
 * @param hadFile whether the file of a sqlite service was opened before with this path
 */
export async function testInProcess(
  owner: string,
  request: Omit<TestRequest, 'type'>,
  hadFile: () => Promise<boolean>,
  starter: Starter,
  log: Log,
): Promise<ConnectionTest> {
  const waiting = turns.waiting(owner);
  if (waiting >= MAX_WAITING)
    return failed(`the same user has ${waiting} connection tests waiting already; try again later`);
  const tooLate = new AbortController();
  const timer = setTimeout(() => tooLate.abort(new TooLate()), MAX_WAIT_MS);
  const test = () => {
    clearTimeout(timer);
    return run({ ...request, type: 'test' }, hadFile, starter, log);
  };
  try {
    return await turns.run(owner, test, tooLate.signal);
  } catch (thrown) {
    if (!(thrown instanceof TooLate)) throw thrown;
    return failed(`${MAX_TESTS} other connection tests are under way; try again later`);
  }
}

/** Its turn has not come in time. */
class TooLate extends Error {}

async function run(
  given: TestRequest,
  hadFile: () => Promise<boolean>,
  starter: Starter,
  log: Log,
): Promise<ConnectionTest> {
  const missing = missingProgram(given.service.type);
  if (missing !== undefined) return failed(missing);
  const memoryMb = memoryOf(given.service.type, given.memoryMb);
  const work = await place({ ...given, memoryMb }, hadFile, starter);
  if ('refusal' in work) return failed(work.refusal);
  const { sqliteFolder, ...request } = work;
  const { timeoutMs, service } = request;
  const limiter = new LogRateLimiter(MAX_LOG_LINES_PER_SECOND, (dropped) =>
    log.warn({ dropped }, 'a connection test logs more than is written'),
  );
  const toStart = { service, memoryMb, sqliteFolder, serves: false };
  const process = new ServiceProcess(starter, toStart, {
    onMessage: (message) => {
      if (message.type === 'log' && limiter.take()) log[message.level](message.details, message.message);
    },
    onEnd: () => limiter.reportDropped(),
  });
  try {
    const { tested } = await pTimeout(process.ask(request), { milliseconds: timeoutMs + GRACE_MS });
    return tested ?? failed('the test has no result');
  } catch (thrown) {
    const isLate = !(thrown instanceof ServiceError);
    return failed(isLate ? `the backend did not answer within ${timeoutMs} ms` : thrown.message);
  } finally {
    process.kill('the test has ended');
    await process.ended();
  }
}

function failed(error: string): ConnectionTest {
  return { connected: false, error };
}
