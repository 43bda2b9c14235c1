/** Sends large bodies in chunks, so that the event loop can serve other requests in between. */
import type { ServerResponse } from 'node:http';

/** Copied by the kernel in a fraction of a millisecond; a large body would be copied whole. */
const CHUNK_BYTES = 128 * 1024;

/**
 * Sends a body and ends the response; for HEAD without the body. Its bytes must not change until the response is
 * closed.
 */
export function sendBody(response: ServerResponse, body: Buffer): void {
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }
  let sent = 0;
  const sendNext = () => {
    const chunk = body.subarray(sent, sent + CHUNK_BYTES);
    sent += chunk.length;
    if (sent === body.length) response.end(chunk);
    else response.write(chunk, (error) => error ?? setImmediate(sendNext));
  };
  sendNext();
}
