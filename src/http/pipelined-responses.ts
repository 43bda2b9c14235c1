/**
 * Responses that wait for an earlier one on their connection (HTTP pipelining). When the connection closes, Node emits
 * `close` only on the response that is being sent; the others would never release what they hold.
 */
import type { Socket } from 'node:net';
import type { EarlyResponse } from './unread-body.js';

const waiting = new WeakMap<Socket, Set<EarlyResponse>>();

/** Closes a queued response together with its connection. */
export function closeWithConnection(response: EarlyResponse): void {
  // Node closes the current response itself.
  if (response.socket) return;
  const { socket } = response.req;
  const responses = waiting.get(socket) ?? watch(socket);
  responses.add(response);
  response.once('close', () => responses.delete(response));
}

function watch(socket: Socket): Set<EarlyResponse> {
  const responses = new Set<EarlyResponse>();
  waiting.set(socket, responses);
  const close = () => {
    for (const response of responses) {
      if (response.closed) continue;
      response.destroyed = true;
      response.emit('close');
    }
  };
  // After Node has closed the current response.
  socket.once('close', () => setImmediate(close));
  return responses;
}
