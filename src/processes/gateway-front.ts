/** Entry of a front process; the cluster of the process `gateway` starts it. */

import { openProcess } from '../bootstrap/start-process.js';
import { loadProcessConfig } from '../config.js';
import { toError } from '../errors.js';
import { Front } from '../gateway/front.js';
import type { FromFront, ToFront } from '../gateway/messages.js';

const { config, log: processLog } = openProcess('gateway', loadProcessConfig);
const log = processLog.child({ front: process.pid });

const front = new Front({
  host: config.HOST,
  port: config.GATEWAY_PORT,
  bodyLimit: config.GATEWAY_BODY_LIMIT_BYTES,
  // A share, but at least enough for the largest body.
  memoryBytes: Math.max(
    (config.GATEWAY_MEMORY_MB * 1024 * 1024) / config.GATEWAY_CONCURRENCY,
    2 * config.GATEWAY_BODY_LIMIT_BYTES,
  ),
  http: config,
  connectionsLimit: config.GATEWAY_CONNECTIONS_LIMIT,
  log,
  // The supervisor may have ended; then this process ends too.
  send: (message: FromFront) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  },
});

process.on('message', (message: ToFront) => void front.receive(message).then(() => endAfter(message)));
process.send?.({ type: 'ready' } satisfies FromFront);
process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole process group; the supervisor stops the fronts.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => void front.stop().then(() => process.exit(0)));
process.on('uncaughtException', (thrown) => {
  log.fatal({ err: toError(thrown) }, 'front failed');
  process.exit(1);
});

function endAfter(message: ToFront): void {
  // Disconnecting flushes messages to the supervisor, and ends this process.
  if (message.type === 'stop') process.disconnect();
}
