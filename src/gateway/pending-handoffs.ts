/**
 * Connections that the supervisor has handed to a front, and that the front has not acknowledged. Node's cluster
 * accepts connections in the supervisor and sends each to a front; when the front exits before it acknowledges one,
 * Node forgets the connection without closing it, and the client waits forever. Here such connections go to another
 * front, which is safe because nothing has been read from them.
 *
 * This relies on messages between the processes of a cluster that Node does not document
 * (`lib/internal/cluster/utils.js` and `round_robin_handle.js`). If they change, nothing is recorded here, and Node's
 * own behaviour remains.
 */
import type { ChildProcess, Serializable } from 'node:child_process';

/** The message that hands over a connection, and the connection. */
interface Handoff {
  readonly message: { readonly seq: number };
  readonly connection: { close(): void };
}

/** The pending handoffs to one front. */
export class PendingHandoffs {
  readonly #pending = new Map<number, Handoff>();

  constructor(front: ChildProcess) {
    const send = front.send.bind(front) as (...args: unknown[]) => boolean;
    front.send = (...args: unknown[]) => {
      const [message, connection] = args;
      if (isHandoff(message) && connection)
        this.#pending.set(message.seq, { message, connection: connection as Handoff['connection'] });
      return send(...args);
    };
    front.on('internalMessage', (message: { ack?: number }) => {
      if (message.ack !== undefined) this.#pending.delete(message.ack);
    });
  }

  /** To be called when the front has exited. @param others fronts that can take its connections */
  redirect(others: readonly ChildProcess[]): void {
    const connected = others.filter((other) => other.connected);
    let next = 0;
    for (const { message, connection } of this.#pending.values()) {
      const other = connected[next++ % connected.length];
      // With the same sequence number, so that the acknowledgement resolves the pending handoff.
      if (other) other.send(message as unknown as Serializable, connection as never);
      else connection.close();
    }
    this.#pending.clear();
  }
}

function isHandoff(message: unknown): message is Handoff['message'] {
  const { cmd, act, seq } = (message ?? {}) as { cmd?: unknown; act?: unknown; seq?: unknown };
  return cmd === 'NODE_CLUSTER' && act === 'newconn' && typeof seq === 'number';
}
