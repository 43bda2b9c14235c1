/**
 * Handlers that were started for an apply, before anything routes to them. The deployments that it makes take them
 * instead of starting others, when they ask for exactly the same: executable, limits of the process, and variables.
 */
import { isDeepStrictEqual } from 'node:util';
import { AppError, toError } from '../../errors.js';
import type {
  PreparationRequest,
  PreparedCounts,
  PreparedHandler,
  Release,
} from '../../internal/gateway-requests.js';
import type { LimitsInForce } from '../../model/endpoint-limits.js';
import { turnOf } from '../../model/owner.js';
import type { SealableValue } from '../../store/variables.js';
import type { Logger } from '../../util/log.js';
import type { Turn } from '../../util/turns.js';
import { type HandlerListeners, type HandlerProcess, HandlerStartError } from './handler-process.js';
import { isSameProcess } from './process-settings.js';

/** What a handler is started with. */
export interface HandlerStart {
  readonly endpointId: string;
  readonly artifact: string;
  readonly limits: LimitsInForce;
  readonly variables: Readonly<Record<string, string>>;
}

export interface PreparedHandlersOptions {
  /** Starts a handler in its turn. */
  readonly start: (
    turn: Turn,
    start: HandlerStart,
    listeners: HandlerListeners,
    abandoned: AbortSignal,
  ) => Promise<HandlerProcess>;
  readonly limitsOf: (limits: PreparedHandler['limits']) => LimitsInForce;
  readonly decrypted: (variable: SealableValue & { readonly name: string }) => string;
  readonly log: Logger;
}

/** Each takes as much memory as one that serves. Others are ended when they are ready, and started again. */
const MAX_KEPT = 64;
/** Longer than an apply takes from here to its commit; its worker may have been lost. */
const KEPT_MS = 120_000;
/** Most entries that are kept of what one of them prints before it is taken. */
const MAX_ENTRIES = 200;

type Entry = Parameters<NonNullable<HandlerListeners['onEntry']>>[0];

/** One that waits. */
interface WaitingHandler extends HandlerStart {
  readonly applyId: string;
  readonly process: HandlerProcess;
  readonly output: LaterListeners;
  readonly timer: NodeJS.Timeout;
}

export class PreparedHandlers {
  readonly #options: PreparedHandlersOptions;
  readonly #waiting = new Set<WaitingHandler>();
  readonly #ending = new Set<Promise<void>>();

  constructor(options: PreparedHandlersOptions) {
    this.#options = options;
  }

  /**
   * Starts handlers, and waits until all are ready.
   * @param signal aborts when nobody waits for that any more
   * @throws AppError handler_start_failed naming the first that is not: then none of them is kept
   */
  async prepare({ applyId, handlers }: PreparationRequest, signal: AbortSignal): Promise<PreparedCounts> {
    const started = await Promise.allSettled(
      handlers.map((handler) => this.#start(applyId, handler, signal)),
    );
    const ready = started.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    const failed = started.findIndex(({ status }) => status === 'rejected');
    if (failed >= 0 || signal.aborted) {
      for (const one of ready) this.#end(one);
      const thrown = (started[failed] as PromiseRejectedResult | undefined)?.reason as unknown;
      throw startError(handlers[failed], thrown ?? new Error('nobody waits for it any more'));
    }
    return { ready: ready.length, kept: ready.filter((one) => this.#waiting.has(one)).length };
  }

  /** The handler that was prepared for a start; it is the caller's from then on. */
  take(start: HandlerStart, listeners: HandlerListeners): HandlerProcess | undefined {
    for (const one of this.#waiting) {
      if (!isSameStart(one, start)) continue;
      this.#forget(one);
      one.output.become(listeners);
      return one.process;
    }
    return undefined;
  }

  /** Ends what no deployment has taken. */
  release({ applyId }: Release): PreparedCounts {
    const left = [...this.#waiting].filter((one) => one.applyId === applyId);
    for (const one of left) this.#end(one);
    return { ready: left.length, kept: 0 };
  }

  /** Ends all of them. */
  async stop(): Promise<void> {
    for (const one of this.#waiting) this.#end(one);
    await Promise.all(this.#ending);
  }

  async #start(applyId: string, handler: PreparedHandler, signal: AbortSignal): Promise<WaitingHandler> {
    const { limitsOf, decrypted, start, log } = this.#options;
    const { endpointId, artifact } = handler;
    const variables = Object.fromEntries(handler.variables.map((one) => [one.name, decrypted(one)]));
    const spec = { endpointId, artifact, limits: limitsOf(handler.limits), variables };
    const output = new LaterListeners();
    const process = await start(turnOf(handler.principal, handler.owner), spec, output.listeners, signal);
    const timer = setTimeout(() => this.#end(one), KEPT_MS);
    timer.unref();
    const one: WaitingHandler = { ...spec, applyId, process, output, timer };
    // The same may be prepared again, by another try of the apply.
    for (const other of this.#waiting) if (isSameStart(other, spec)) this.#end(other);
    this.#waiting.add(one);
    void process.ended.then((reason) => {
      if (!this.#waiting.has(one)) return;
      log.warn({ endpoint_id: endpointId, reason }, 'a prepared handler has ended before it was needed');
      this.#end(one);
    });
    if (this.#waiting.size > MAX_KEPT) this.#end(one);
    return one;
  }

  #forget(one: WaitingHandler): void {
    this.#waiting.delete(one);
    clearTimeout(one.timer);
  }

  #end(one: WaitingHandler): void {
    if (!this.#waiting.has(one)) return;
    this.#forget(one);
    const ended = one.process
      .stop()
      .catch((error: unknown) =>
        this.#options.log.error({ err: error }, 'a prepared handler could not be ended'),
      )
      .finally(() => this.#ending.delete(ended));
    this.#ending.add(ended);
  }
}

function isSameStart(left: HandlerStart, right: HandlerStart): boolean {
  return (
    left.endpointId === right.endpointId &&
    left.artifact === right.artifact &&
    isSameProcess({ limits: left.limits, environment: null }, { limits: right.limits, environment: null }) &&
    isDeepStrictEqual(left.variables, right.variables)
  );
}

function startError(handler: PreparedHandler | undefined, thrown: unknown): unknown {
  if (!(thrown instanceof HandlerStartError)) return thrown;
  return new AppError('handler_start_failed', `${handler?.name}: ${toError(thrown).message}`);
}

/** Keeps what a handler prints until it is known who listens. */
class LaterListeners {
  readonly listeners: HandlerListeners;
  #entries: Entry[] = [];
  #target: HandlerListeners | undefined;

  constructor() {
    this.listeners = {
      onEntry: (entry) => {
        if (this.#target) this.#target.onEntry?.(entry);
        else if (this.#entries.length < MAX_ENTRIES) this.#entries.push(entry);
      },
      onUse: (cpuSeconds, bytes) => this.#target?.onUse?.(cpuSeconds, bytes),
    };
  }

  become(target: HandlerListeners): void {
    this.#target = target;
    for (const entry of this.#entries) target.onEntry?.(entry);
    this.#entries = [];
  }
}
