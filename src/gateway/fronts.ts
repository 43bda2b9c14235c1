/** The supervisor's side of the fronts: starts and restarts them, and sends them messages. */
import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import type { MetricSnapshot } from '../metrics/process-metrics.js';
import type { Logger } from '../util/log.js';
import type { EndpointState, FromFront, ToFront } from './messages.js';
import { PendingHandoffs } from './pending-handoffs.js';

/** Events that fronts report. */
export interface FrontsEvents {
  /** A request to this instance exceeded its deadline. */
  readonly deadlineExceeded: (endpointId: string, instanceId: number) => void;
  /** The connection to this instance broke while it should serve. */
  readonly connectionLost: (endpointId: string, instanceId: number, reason: string) => void;
  readonly counted: (requests: number) => void;
}

type Request = ToFront extends infer Message
  ? Message extends ToFront
    ? Omit<Message, 'seq'>
    : never
  : never;
type Done = Extract<FromFront, { type: 'done' }>;

interface FrontProcess {
  readonly worker: Worker;
  readonly pending: Map<number, (answer: Done | undefined) => void>;
  /** Resolves when it receives messages, or has exited. What is sent before may stay unread. */
  readonly ready: Promise<void>;
  readonly setReady: () => void;
  readonly handoffs: PendingHandoffs;
}

/** A front that exits sooner than this after its start is restarted after a pause. */
const SHORT_LIFE_MS = 1_000;
/**
 * Nearly all that a front allocates is garbage when its request ends. V8 begins with 1 MB for new objects, which fills
 * up while those requests are in flight, so that each collection copies them all; with 32 MB hardly any are left to
 * copy.
 */
const YOUNG_GENERATION = ['--min-semi-space-size=32', '--max-semi-space-size=32'];
/** States sent to a new front in one message, to keep messages small. */
const BATCH = 500;

/** Starts and supervises the front processes. */
export class Fronts {
  readonly #log: Logger;
  readonly #events: FrontsEvents;
  readonly #fronts = new Map<number, FrontProcess>();
  /** All that a new front is sent. */
  readonly #states = new Map<string, EndpointState>();
  #seq = 0;
  #stopping = false;

  constructor(log: Logger, events: FrontsEvents) {
    this.#log = log;
    this.#events = events;
    cluster.setupPrimary({
      exec: fileURLToPath(new URL('../processes/gateway-front.js', import.meta.url)),
      execArgv: [...process.execArgv, ...YOUNG_GENERATION],
    });
  }

  /** Starts the fronts; resolves when all of them listen. @throws Error when the port cannot be opened */
  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#startOne()));
  }

  /** Sends changed endpoints to all fronts; resolves when all route accordingly. */
  async apply(endpoints: readonly EndpointState[], removed: readonly string[] = []): Promise<void> {
    for (const id of removed) this.#states.delete(id);
    for (const endpoint of endpoints) this.#states.set(endpoint.id, endpoint);
    await this.#all({ type: 'apply', endpoints, removed });
  }

  /** Resolves when no front has a request in flight in a replaced instance. */
  async drained(endpointId: string, instanceId: number): Promise<void> {
    await this.#all({ type: 'drain', endpointId, instanceId });
  }

  /** The metrics of all fronts. */
  async metrics(): Promise<MetricSnapshot[]> {
    const answers = await this.#all({ type: 'metrics' });
    return answers.flatMap((answer) => (answer?.metrics ? [answer.metrics] : []));
  }

  /** Stops all fronts after the requests in flight; resolves when they have exited. */
  async stop(): Promise<void> {
    this.#stopping = true;
    // Not `once` of node:events, which an `error` would end: a front that cannot be reached is about to exit.
    const exited = [...this.#fronts.values()].map(
      ({ worker }) => new Promise((resolve) => worker.once('exit', resolve)),
    );
    await this.#all({ type: 'stop' });
    await Promise.all(exited);
  }

  async #startOne(): Promise<void> {
    const started = performance.now();
    const worker = cluster.fork();
    let setReady: () => void = () => undefined;
    const ready = new Promise<void>((resolve) => {
      setReady = resolve;
    });
    const handoffs = new PendingHandoffs(worker.process);
    const front: FrontProcess = { worker, pending: new Map(), ready, setReady, handoffs };
    worker.on('message', (message: FromFront) => this.#receive(front, message));
    worker.on('error', (error) =>
      this.#log.warn({ err: error, front: worker.process.pid }, 'front cannot be reached'),
    );
    worker.on('exit', (code, signal) => this.#exited(worker.id, front, started, code, signal));
    this.#fronts.set(worker.id, front);

    await front.ready;
    const ids = [...this.#states.keys()];
    for (let at = 0; at < ids.length; at += BATCH) {
      // The current states: changes are sent at once meanwhile, and an older state must not undo them.
      const endpoints = ids.slice(at, at + BATCH).flatMap((id) => this.#states.get(id) ?? []);
      await this.#request(front, { type: 'apply', endpoints, removed: [] });
    }
    const answer = await this.#request(front, { type: 'listen' });
    if (answer?.error !== undefined) throw new Error(`The gateway cannot open its port: ${answer.error}`);
    if (answer)
      this.#log.info({ front: worker.process.pid, ms: millisecondsSince(started) }, 'front listening');
  }

  #exited(
    id: number,
    front: FrontProcess,
    started: number,
    code: number | null,
    signal: string | null,
  ): void {
    this.#fronts.delete(id);
    front.setReady();
    front.handoffs.redirect([...this.#fronts.values()].map(({ worker }) => worker.process));
    for (const answer of front.pending.values()) answer(undefined);
    if (this.#stopping) return;
    this.#log.error({ front: front.worker.process.pid, code, signal }, 'front exited, starting another');
    const restart = () => {
      if (this.#stopping) return;
      this.#startOne().catch((error: unknown) =>
        this.#log.error({ err: error }, 'front could not be started'),
      );
    };
    if (performance.now() - started < SHORT_LIFE_MS) setTimeout(restart, SHORT_LIFE_MS);
    else restart();
  }

  #receive(front: FrontProcess, message: FromFront): void {
    if (message.type === 'ready') front.setReady();
    else if (message.type === 'done') front.pending.get(message.seq)?.(message);
    else if (message.type === 'deadline-exceeded')
      this.#events.deadlineExceeded(message.endpointId, message.instanceId);
    else if (message.type === 'connection-lost')
      this.#events.connectionLost(message.endpointId, message.instanceId, message.reason);
    else this.#events.counted(message.requests);
  }

  #all(request: Request): Promise<(Done | undefined)[]> {
    return Promise.all([...this.#fronts.values()].map((front) => this.#request(front, request)));
  }

  /** @returns the answer, or undefined when the front exited before it answered */
  async #request(front: FrontProcess, request: Request): Promise<Done | undefined> {
    await front.ready;
    const seq = ++this.#seq;
    return new Promise((resolve) => {
      if (!front.worker.isConnected()) return resolve(undefined);
      front.pending.set(seq, (answer) => {
        front.pending.delete(seq);
        resolve(answer);
      });
      front.worker.send({ ...request, seq } as ToFront);
    });
  }
}

function millisecondsSince(moment: number): number {
  return Math.round(performance.now() - moment);
}
