/** Tests connections, each in a process of its own: what answers may be anything. */
import pLimit from 'p-limit';
import pTimeout from 'p-timeout';
import type { ConnectionTest } from '../../model/connection-test.js';
import type { Log } from '../../util/log.js';
import type { TestRequest } from './messages.js';
import { ServiceProcess } from './service-process.js';

/** Each takes a processor for a moment, and some 50 MiB. */
const MAX_TESTS = 4;
/** The process has its own time limit; this is for one that does not keep it. */
const GRACE_MS = 300;

const limit = pLimit(MAX_TESTS);

/** Connects, makes one round trip, and closes the connection. Never fails. */
export async function testInProcess(
  request: Omit<TestRequest, 'type'>,
  memoryMb: number,
  log: Log,
): Promise<ConnectionTest> {
  const asked = performance.now();
  return limit(() => {
    const timeoutMs = Math.max(1, Math.round(request.timeoutMs - (performance.now() - asked)));
    return run({ ...request, type: 'test', timeoutMs }, memoryMb, log);
  });
}

async function run(request: TestRequest, memoryMb: number, log: Log): Promise<ConnectionTest> {
  const { timeoutMs, service } = request;
  const failed = (error: string): ConnectionTest => ({ connected: false, error });
  let process: ServiceProcess | undefined;
  const tested = new Promise<ConnectionTest>((resolve) => {
    process = new ServiceProcess(service.id, memoryMb, {
      onMessage: (message) => {
        if (message.type === 'tested') resolve(message.result);
        else if (message.type === 'log') log[message.level](message.details, message.message);
      },
      onEnd: (reason) => resolve(failed(`the process of the test has ended: ${reason}`)),
    });
    process.send(request);
  });
  try {
    return await pTimeout(tested, {
      milliseconds: timeoutMs + GRACE_MS,
      fallback: () => failed(`the backend did not answer within ${timeoutMs} ms`),
    });
  } finally {
    process?.kill('the test has ended');
    await process?.ended();
  }
}
