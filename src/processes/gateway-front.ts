/** Entry of a front process; the cluster of the process `gateway` starts it. */

import { loadProcessConfig } from '../config.js';
import { toError } from '../errors.js';
import { Front } from '../gateway/front.js';
import type { FromFront, ToFront } from '../gateway/messages.js';
import { openProcess } from '../process.js';

const { config, log: processLog } = openProcess('gateway', loadProcessConfig);
const log = processLog.child({ front: process.pid });

const front = new Front({
  host: config.HOST,
  port: config.GATEWAY_PORT,
  bodyLimit: config.GATEWAY_BODY_LIMIT_BYTES,
  // A share, but at least so much that the largest body has room.
  memoryBytes: Math.max(
    (config.GATEWAY_MEMORY_MB * 1024 * 1024) / config.GATEWAY_CONCURRENCY,
    2 * config.GATEWAY_BODY_LIMIT_BYTES,
  ),
  http: config,
  connectionsLimit: config.GATEWAY_CONNECTIONS_LIMIT,
  log,
  // The supervisor may be gone already; then this process ends too.
  send: (message: FromFront) => {
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  },
});

process.on('message', (message: ToFront) => void front.receive(message).then(() => endAfter(message)));
process.send?.({ type: 'hello' } satisfies FromFront);
process.on('disconnect', () => process.exit(0));
// Ctrl-C reaches the whole process group; the supervisor says when it is time to end.
process.on('SIGINT', () => undefined);
process.on('SIGTERM', () => void front.stop().then(() => process.exit(0)));
process.on('uncaughtException', (thrown) => {
  log.fatal({ err: toError(thrown) }, 'front failed');
  process.exit(1);
});

function endAfter(message: ToFront): void {
  // Disconnecting sends what is still queued for the supervisor, and ends this process.
  if (message.type === 'stop') process.disconnect();
}
