/** Large bodies, sent so that other requests have their turn meanwhile. */
import type { ServerResponse } from 'node:http';

/** The system copies this much in a fraction of a millisecond; of a large body it would take megabytes at once. */
const PIECE_BYTES = 128 * 1024;

/** Sends a body and ends the answer with it, for HEAD without it. Its bytes must not change before the answer is closed. */
export function endInPieces(response: ServerResponse, body: Buffer): void {
  if (response.req.method === 'HEAD') {
    response.end();
    return;
  }
  let sent = 0;
  const sendNext = () => {
    const piece = body.subarray(sent, sent + PIECE_BYTES);
    sent += piece.length;
    if (sent === body.length) response.end(piece);
    else response.write(piece, (error) => error ?? setImmediate(sendNext));
  };
  sendNext();
}
