/**
 * Answers that wait for an earlier one on their connection. When it breaks, Node tells only the answer that is being sent;
 * whoever waits for the end of another (to let go of what it holds, for example) would wait for ever.
 */
import type { Socket } from 'node:net';
import type { EarlyResponse } from './unread-body.js';

const waiting = new WeakMap<Socket, Set<EarlyResponse>>();

/** Sees to it that the answer is closed when its connection is, if it has to wait for others. */
export function closeWithConnection(response: EarlyResponse): void {
  // It is the one that is being sent.
  if (response.socket) return;
  const { socket } = response.req;
  const responses = waiting.get(socket) ?? watch(socket);
  responses.add(response);
  response.once('close', () => responses.delete(response));
}

function watch(socket: Socket): Set<EarlyResponse> {
  const responses = new Set<EarlyResponse>();
  waiting.set(socket, responses);
  // After Node has told the one it knows of.
  const close = () => {
    for (const response of responses) {
      if (response.closed) continue;
      response.destroyed = true;
      response.emit('close');
    }
  };
  socket.once('close', () => setImmediate(close));
  return responses;
}
