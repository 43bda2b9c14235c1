/**
 * Connections on their way from the supervisor to a front. Node's cluster accepts them in the supervisor, hands each over to
 * a front and waits for that to say that it has it; when the front ends before it could, Node forgets the connection and
 * leaves it open, and its client waits for ever. Here such connections are handed over to another front: nothing can have
 * been read from them.
 *
 * Works by messages between the processes of a cluster that Node does not document (`lib/internal/cluster/utils.js` and
 * `round_robin_handle.js`). Were they others, nothing would be noted here, and all would be as Node does it.
 */
import type { ChildProcess, Serializable } from 'node:child_process';

/** A message that hands a connection over, and the connection. */
interface HandOver {
  readonly message: { readonly seq: number };
  readonly connection: { close(): void };
}

/** The connections that are on their way to one front. */
export class HandedOver {
  readonly #open = new Map<number, HandOver>();

  constructor(front: ChildProcess) {
    const send = front.send.bind(front) as (...args: unknown[]) => boolean;
    front.send = (...args: unknown[]) => {
      const [message, connection] = args;
      if (isHandOver(message) && connection)
        this.#open.set(message.seq, { message, connection: connection as HandOver['connection'] });
      return send(...args);
    };
    front.on('internalMessage', (message: { ack?: number }) => {
      if (message.ack !== undefined) this.#open.delete(message.ack);
    });
  }

  /** To be called when the front has ended. @param others fronts that can take its connections */
  passOn(others: readonly ChildProcess[]): void {
    const able = others.filter(({ connected }) => connected);
    let next = 0;
    for (const { message, connection } of this.#open.values()) {
      const other = able[next++ % able.length];
      // With the number it had: whoever waits for the front to have the connection learns of it in the usual way.
      if (other) other.send(message as unknown as Serializable, connection as never);
      else connection.close();
    }
    this.#open.clear();
  }
}

function isHandOver(message: unknown): message is HandOver['message'] {
  const { cmd, act, seq } = (message ?? {}) as { cmd?: unknown; act?: unknown; seq?: unknown };
  return cmd === 'NODE_CLUSTER' && act === 'newconn' && typeof seq === 'number';
}
