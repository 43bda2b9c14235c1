/** An endpoint as a front sees it: where its requests go right now. */

import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import type { MemoryBudget } from '../memory-budget.js';
import { isOutOfDescriptors } from '../no-descriptors.js';
import type { EndpointMetrics } from './front-metrics.js';
import { connectHandler, type Exchange, type HandlerConnection } from './handler-connection.js';
import type { FrontLimits, HandlerState } from './messages.js';
import type { Route } from './route-table.js';

/** A request that is to be sent to a handler. */
export interface Outgoing extends Exchange {
  readonly head: string;
  readonly body: Uint8Array;
  /** No handler serves the endpoint. */
  unavailable(): void;
  /** The endpoint has as many requests as it may have. */
  crowded(): void;
}

/** One endpoint alone does not get all the memory for bodies: so much is left for the others. */
const SHARE_OF_MEMORY = 0.5;

/** A front without file descriptors looks so often whether there are any. */
const DESCRIPTORS_AGAIN_MS = 100;

/** How long, and how many, requests are held while a handler is being started. */
const HOLD_MS = 5_000;
const MAX_HELD = 1_000;

interface Draining {
  readonly instanceId: number;
  readonly done: Promise<void>;
}

interface Held {
  readonly request: Outgoing;
  readonly until: number;
}

/** Where an endpoint is to be found, and what counts its requests there. */
export interface Address extends Route {
  /** False when the endpoint is disabled: it is not in the route table. */
  readonly routed: boolean;
  readonly metrics: EndpointMetrics;
}

/** What is told of a handler that does not work as it should. */
export interface HandlerEvents {
  /** A request ran over its deadline in this instance. */
  readonly stuck: (endpointId: string, instanceId: number) => void;
  /** The connection with this instance broke while it should serve. */
  readonly lost: (endpointId: string, instanceId: number, reason: string) => void;
  /** This front has no file descriptor left to connect with; it is tried again soon. */
  readonly outOfDescriptors: (error: Error) => void;
}

/** Routes the requests of one endpoint to its handler process, across restarts and swaps. */
export class FrontEndpoint {
  #handler: HandlerState = { kind: 'none' };
  #connection: HandlerConnection | undefined;
  #instanceId: number | undefined;
  /** The latest change of the handler, done or going on. */
  #change: Promise<void> = Promise.resolve();
  /** Connections that were taken out of service and still have requests in flight. */
  readonly #draining = new Map<HandlerConnection, Draining>();
  #held: Held[] = [];
  /** Bytes of bodies of its requests and answers that this front holds. */
  heldBytes = 0;

  constructor(
    readonly id: string,
    private readonly events: HandlerEvents,
    private readonly memory: MemoryBudget,
    public address: Address,
    public limits: FrontLimits,
  ) {}

  get inFlight(): number {
    let count = this.#connection?.inFlight ?? 0;
    for (const connection of this.#draining.keys()) count += connection.inFlight;
    return count;
  }

  /** @returns false when there is no room for so many bytes more, or it has had enough of it */
  hold(bytes: number): boolean {
    if (this.heldBytes + bytes > this.memory.limitBytes * SHARE_OF_MEMORY) return false;
    if (!this.memory.take(bytes)) return false;
    this.heldBytes += bytes;
    return true;
  }

  letGo(bytes: number): void {
    this.memory.giveBack(bytes);
    this.heldBytes -= bytes;
  }

  /** Sends a request to the handler, now or as soon as there is one, unless it has enough of them. */
  dispatch(request: Outgoing): void {
    if (this.#isFull()) request.crowded();
    else this.forward(request);
  }

  /** The same for a request that was let in before. */
  forward(request: Outgoing): void {
    const connection = this.#connection;
    if (connection?.isOpen) {
      if (!connection.send(request.head, request.body, request)) request.unavailable();
    } else if (this.#handler.kind === 'none' || this.#held.length >= MAX_HELD) {
      request.unavailable();
    } else {
      this.#held.push({ request, until: Math.min(performance.now() + HOLD_MS, request.deadline) });
    }
  }

  /** Changes what serves the endpoint. Resolves when requests go there, or to what has overtaken it. */
  setHandler(handler: HandlerState): Promise<void> {
    this.#change = this.#setHandler(handler);
    return this.#change;
  }

  async #setHandler(handler: HandlerState): Promise<void> {
    this.#handler = handler;
    if (handler.kind !== 'running') {
      this.#retire();
      if (handler.kind === 'none') this.#releaseHeld();
      return;
    }
    if (this.#instanceId === handler.instance.id && this.#connection?.isOpen) return;
    const { id, socket } = handler.instance;
    let connection: HandlerConnection;
    try {
      connection = await connectHandler(socket, this.memory, {
        stuck: () => this.events.stuck(this.id, id),
        // One that was overtaken while it was made is closed by us.
        lost: (reason) => {
          if (this.#connection === connection) this.events.lost(this.id, id, reason);
        },
      });
    } catch (error) {
      if (isOutOfDescriptors(error)) return this.#tryAgain(handler, toError(error));
      // It has just died. The one before it is about to be ended all the same: requests wait for what comes next.
      if (this.#handler === handler) {
        this.#retire();
        this.events.lost(this.id, id, `it cannot be reached: ${toError(error).message}`);
      }
      throw error;
    }
    if (this.#handler !== handler) {
      // Overtaken by a later change while connecting.
      connection.close();
      return this.#change;
    }
    this.#retire();
    this.#connection = connection;
    this.#instanceId = id;
    if (!connection.isOpen)
      this.events.lost(this.id, id, 'it closed its connection with the gateway at once');
    this.#releaseHeld();
  }

  /** The trouble is this front's own, the handler may be well. What serves now goes on. */
  async #tryAgain(handler: HandlerState, error: Error): Promise<void> {
    this.events.outOfDescriptors(error);
    await delay(DESCRIPTORS_AGAIN_MS);
    return this.#handler === handler ? this.#setHandler(handler) : this.#change;
  }

  /**
   * Resolves when no request is in flight in instances that do not serve this endpoint any more.
   * @param instanceId only this one
   */
  async drained(instanceId?: number): Promise<void> {
    for (const draining of this.#draining.values())
      if (instanceId === undefined || draining.instanceId === instanceId) await draining.done;
  }

  /** Fails what has waited too long, in the handler or for one. */
  expire(now: number): void {
    this.#connection?.expire(now);
    for (const connection of this.#draining.keys()) connection.expire(now);
    while (this.#held[0] && this.#held[0].until <= now) this.#held.shift()?.request.unavailable();
  }

  /** Takes the current connection out of service; it closes once nothing is in flight. */
  #retire(): void {
    const connection = this.#connection;
    const instanceId = this.#instanceId;
    if (!connection || instanceId === undefined) return;
    this.#connection = undefined;
    this.#instanceId = undefined;
    const done = connection.drained().then(() => {
      this.#draining.delete(connection);
      connection.close();
    });
    this.#draining.set(connection, { instanceId, done });
  }

  #releaseHeld(): void {
    const held = this.#held;
    this.#held = [];
    for (const { request } of held) this.forward(request);
  }

  #isFull(): boolean {
    const { concurrentRequests } = this.limits;
    const count = (this.#connection?.inFlight ?? 0) + this.#held.length;
    if (count >= concurrentRequests) return true;
    return this.#draining.size > 0 && this.inFlight + this.#held.length >= concurrentRequests;
  }
}
