/** An endpoint in a front: which handler its requests go to. */

import { setTimeout as delay } from 'node:timers/promises';
import { toError } from '../errors.js';
import { isOutOfDescriptors } from '../util/file-descriptors.js';
import type { MemoryBudget } from '../util/memory-budget.js';
import type { EndpointMetrics } from './front-metrics.js';
import { connectHandler, type Exchange, type HandlerConnection } from './handler-connection.js';
import type { FrontLimits, HandlerState } from './messages.js';
import type { Route } from './route-table.js';

/** A request to a handler. */
export interface Outgoing extends Exchange {
  readonly head: string;
  readonly body: Uint8Array;
  /** No handler is running. */
  unavailable(): void;
  /** The endpoint has reached its limit of concurrent requests. */
  overloaded(): void;
}

/** The share of the memory for bodies that one endpoint may use. */
const SHARE_OF_MEMORY = 0.5;

/** A front that is out of file descriptors tries to connect again after this. */
const DESCRIPTORS_RETRY_MS = 100;

/** How long, and how many, requests are queued while a handler is being started. */
const QUEUE_MS = 5_000;
const MAX_QUEUED = 1_000;

interface Draining {
  readonly instanceId: number;
  readonly done: Promise<void>;
}

interface Queued {
  readonly request: Outgoing;
  readonly until: number;
}

/** The route of an endpoint, with the metrics that are labelled with it. */
export interface Address extends Route {
  /** False when the endpoint is disabled: it is not in the route table. */
  readonly routed: boolean;
  readonly metrics: EndpointMetrics;
}

/** Failures of a handler. */
export interface HandlerEvents {
  /** A request to this instance exceeded its deadline. */
  readonly deadlineExceeded: (endpointId: string, instanceId: number) => void;
  /** The connection to this instance broke while it should serve. */
  readonly connectionLost: (endpointId: string, instanceId: number, reason: string) => void;
  /** This front has no file descriptor left for a connection; it tries again soon. */
  readonly outOfDescriptors: (error: Error) => void;
}

/** Sends the requests of one endpoint to its handler process, across restarts and replacements. */
export class FrontEndpoint {
  readonly #events: HandlerEvents;
  readonly #memory: MemoryBudget;
  #handler: HandlerState = { kind: 'none' };
  #connection: HandlerConnection | undefined;
  #instanceId: number | undefined;
  /** The latest change of the handler, finished or not. */
  #change: Promise<void> = Promise.resolve();
  /** Replaced connections that still have requests in flight. */
  readonly #draining = new Map<HandlerConnection, Draining>();
  #queue: Queued[] = [];
  /** Bytes of request and response bodies in memory. */
  heldBytes = 0;

  constructor(
    readonly id: string,
    events: HandlerEvents,
    memory: MemoryBudget,
    public address: Address,
    public limits: FrontLimits,
  ) {
    this.#events = events;
    this.#memory = memory;
  }

  get inFlight(): number {
    let count = this.#connection?.inFlight ?? 0;
    for (const connection of this.#draining.keys()) count += connection.inFlight;
    return count;
  }

  /** Reserves memory for a body. @returns false when the front or the endpoint has reached its limit */
  reserve(bytes: number): boolean {
    if (this.heldBytes + bytes > this.#memory.limitBytes * SHARE_OF_MEMORY) return false;
    if (!this.#memory.take(bytes)) return false;
    this.heldBytes += bytes;
    return true;
  }

  release(bytes: number): void {
    this.#memory.release(bytes);
    this.heldBytes -= bytes;
  }

  /** Sends a request to the handler, or queues it until there is one; rejects it when the endpoint is overloaded. */
  dispatch(request: Outgoing): void {
    if (this.#isFull()) request.overloaded();
    else this.forward(request);
  }

  /** The same for a request that was accepted before. */
  forward(request: Outgoing): void {
    const connection = this.#connection;
    if (connection?.isOpen) {
      if (!connection.send(request.head, request.body, request)) request.unavailable();
    } else if (this.#handler.kind === 'none' || this.#queue.length >= MAX_QUEUED) {
      request.unavailable();
    } else {
      this.#queue.push({ request, until: Math.min(performance.now() + QUEUE_MS, request.deadline) });
    }
  }

  /** Changes the handler. Resolves when requests go to it, or to a newer one. */
  setHandler(handler: HandlerState): Promise<void> {
    this.#change = this.#setHandler(handler);
    return this.#change;
  }

  async #setHandler(handler: HandlerState): Promise<void> {
    this.#handler = handler;
    if (handler.kind !== 'running') {
      this.#retire();
      if (handler.kind === 'none') this.#sendQueued();
      return;
    }
    if (this.#instanceId === handler.instance.id && this.#connection?.isOpen) return;
    const { id, socket } = handler.instance;
    let connection: HandlerConnection;
    try {
      connection = await connectHandler(socket, this.#memory, {
        deadlineExceeded: () => this.#events.deadlineExceeded(this.id, id),
        // A newer handler may have replaced it meanwhile.
        connectionLost: (reason) => {
          if (this.#connection === connection) this.#events.connectionLost(this.id, id, reason);
        },
      });
    } catch (error) {
      if (isOutOfDescriptors(error)) return this.#retry(handler, toError(error));
      // The handler has just exited. The one before it is being replaced all the same: requests wait for the next.
      if (this.#handler === handler) {
        this.#retire();
        this.#events.connectionLost(this.id, id, `it cannot be reached: ${toError(error).message}`);
      }
      throw error;
    }
    if (this.#handler !== handler) {
      // A later change came while connecting.
      connection.close();
      return this.#change;
    }
    this.#retire();
    this.#connection = connection;
    this.#instanceId = id;
    if (!connection.isOpen)
      this.#events.connectionLost(this.id, id, 'it closed its connection to the gateway at once');
    this.#sendQueued();
  }

  /** The failure is this front's own, not the handler's. The current connection stays. */
  async #retry(handler: HandlerState, error: Error): Promise<void> {
    this.#events.outOfDescriptors(error);
    await delay(DESCRIPTORS_RETRY_MS);
    return this.#handler === handler ? this.#setHandler(handler) : this.#change;
  }

  /**
   * Resolves when no request is in flight in replaced instances.
   * @param instanceId only this one
   */
  async drained(instanceId?: number): Promise<void> {
    for (const draining of this.#draining.values())
      if (instanceId === undefined || draining.instanceId === instanceId) await draining.done;
  }

  /** Fails requests past their deadline, sent or queued. */
  expire(now: number): void {
    this.#connection?.expire(now);
    for (const connection of this.#draining.keys()) connection.expire(now);
    while (this.#queue[0] && this.#queue[0].until <= now) this.#queue.shift()?.request.unavailable();
  }

  /** Sends no more requests over the current connection, which closes when none is in flight. */
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

  #sendQueued(): void {
    const queue = this.#queue;
    this.#queue = [];
    for (const { request } of queue) this.forward(request);
  }

  #isFull(): boolean {
    const { concurrentRequests } = this.limits;
    const count = (this.#connection?.inFlight ?? 0) + this.#queue.length;
    if (count >= concurrentRequests) return true;
    return this.#draining.size > 0 && this.inFlight + this.#queue.length >= concurrentRequests;
  }
}
