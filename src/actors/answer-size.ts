/** Answers have to fit into a frame. */
import { MAX_BODY_BYTES } from '../wire/codec.js';
import { ServiceError } from './service-error.js';

/**
 * To be called before an answer is complete, when it can grow without bounds.
 * @throws ServiceError invalid, when so many bytes could not be sent to a handler
 */
export function requireSendable(bytes: number): void {
  if (bytes > MAX_BODY_BYTES) {
    throw new ServiceError(
      'invalid',
      `the answer has at least ${bytes} bytes, and ${MAX_BODY_BYTES} is the most a handler can get: ask for less`,
    );
  }
}
