/** The fronts of a gateway as the supervisor sees them: kept alive, kept up to date, asked and told things. */
import cluster, { type Worker } from 'node:cluster';
import { fileURLToPath } from 'node:url';
import type { Logger } from '../log.js';
import type { MetricSnapshot } from '../metrics/process-metrics.js';
import { HandedOver } from './handed-over.js';
import type { EndpointState, FromFront, ToFront } from './messages.js';

/** What fronts report. */
export interface FrontsEvents {
  /** A request in this instance ran over its deadline. */
  readonly stuck: (endpointId: string, instanceId: number) => void;
  /** The connection with this instance is lost while it should serve. */
  readonly lost: (endpointId: string, instanceId: number, reason: string) => void;
  readonly counted: (requests: number) => void;
}

type Order = ToFront extends infer Message ? (Message extends ToFront ? Omit<Message, 'seq'> : never) : never;
type Done = Extract<FromFront, { type: 'done' }>;

interface FrontProcess {
  readonly worker: Worker;
  readonly waiting: Map<number, (answer: Done | undefined) => void>;
  /** Resolves when it can be given orders, or has ended. What is sent before may stay unread. */
  readonly greeted: Promise<void>;
  readonly hello: () => void;
  readonly connections: HandedOver;
}

/** A front that ends sooner than this after its start is started again only after a pause. */
const SHORT_LIFE_MS = 1_000;
/**
 * Nearly all that a front allocates dies with its request. V8 begins with 1 MB for new objects, which fills up while
 * those requests are still in flight, so that each collection copies them all; with 32 MB hardly any is left to copy.
 */
const YOUNG_GENERATION = ['--min-semi-space-size=32', '--max-semi-space-size=32'];
/** States sent to a new front in one message: keeps single IPC messages small. */
const BATCH = 500;

/** Starts and supervises the front processes. */
export class Fronts {
  readonly #fronts = new Map<number, FrontProcess>();
  /** Everything a new front has to be told. */
  readonly #states = new Map<string, EndpointState>();
  #seq = 0;
  #stopping = false;

  constructor(
    private readonly log: Logger,
    private readonly events: FrontsEvents,
  ) {
    cluster.setupPrimary({
      exec: fileURLToPath(new URL('../processes/gateway-front.js', import.meta.url)),
      execArgv: [...process.execArgv, ...YOUNG_GENERATION],
    });
  }

  /** Starts the fronts; resolves when all of them listen. @throws Error when the port cannot be opened */
  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#startOne()));
  }

  /** Tells all fronts what has changed; resolves when requests go the new way everywhere. */
  async apply(endpoints: readonly EndpointState[], removed: readonly string[] = []): Promise<void> {
    for (const id of removed) this.#states.delete(id);
    for (const endpoint of endpoints) this.#states.set(endpoint.id, endpoint);
    await this.#all({ type: 'apply', endpoints, removed });
  }

  /** Resolves when no front has a request any more in an instance that was taken from its endpoint. */
  async drained(endpointId: string, instanceId: number): Promise<void> {
    await this.#all({ type: 'drain', endpointId, instanceId });
  }

  /** The metrics of all fronts. */
  async metrics(): Promise<MetricSnapshot[]> {
    const answers = await this.#all({ type: 'metrics' });
    return answers.flatMap((answer) => (answer?.metrics ? [answer.metrics] : []));
  }

  /** Lets all fronts finish what is in flight; resolves when they have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    // Not `once`, which an `error` would end: one that cannot be told any more is about to exit.
    const ended = [...this.#fronts.values()].map(
      ({ worker }) => new Promise((resolve) => worker.once('exit', resolve)),
    );
    await this.#all({ type: 'stop' });
    await Promise.all(ended);
  }

  async #startOne(): Promise<void> {
    const started = performance.now();
    const worker = cluster.fork();
    let hello: () => void = () => undefined;
    const greeted = new Promise<void>((resolve) => {
      hello = resolve;
    });
    const connections = new HandedOver(worker.process);
    const front: FrontProcess = { worker, waiting: new Map(), greeted, hello, connections };
    worker.on('message', (message: FromFront) => this.#receive(front, message));
    worker.on('error', (error) =>
      this.log.warn({ err: error, front: worker.process.pid }, 'front cannot be reached'),
    );
    worker.on('exit', (code, signal) => this.#ended(worker.id, front, started, code, signal));
    this.#fronts.set(worker.id, front);

    await front.greeted;
    const ids = [...this.#states.keys()];
    for (let at = 0; at < ids.length; at += BATCH) {
      // As they are now: what changes meanwhile is sent at once, and must not be undone by an older state.
      const endpoints = ids.slice(at, at + BATCH).flatMap((id) => this.#states.get(id) ?? []);
      await this.#order(front, { type: 'apply', endpoints, removed: [] });
    }
    const answer = await this.#order(front, { type: 'listen' });
    if (answer?.error !== undefined) throw new Error(`The gateway cannot open its port: ${answer.error}`);
    if (answer)
      this.log.info({ front: worker.process.pid, ms: millisecondsSince(started) }, 'front listening');
  }

  #ended(id: number, front: FrontProcess, started: number, code: number | null, signal: string | null): void {
    this.#fronts.delete(id);
    front.hello();
    front.connections.passOn([...this.#fronts.values()].map(({ worker }) => worker.process));
    for (const answer of front.waiting.values()) answer(undefined);
    if (this.#stopping) return;
    this.log.error({ front: front.worker.process.pid, code, signal }, 'front ended, starting another');
    const restart = () => {
      if (this.#stopping) return;
      this.#startOne().catch((error: unknown) =>
        this.log.error({ err: error }, 'front could not be started'),
      );
    };
    if (performance.now() - started < SHORT_LIFE_MS) setTimeout(restart, SHORT_LIFE_MS);
    else restart();
  }

  #receive(front: FrontProcess, message: FromFront): void {
    if (message.type === 'hello') front.hello();
    else if (message.type === 'done') front.waiting.get(message.seq)?.(message);
    else if (message.type === 'stuck') this.events.stuck(message.endpointId, message.instanceId);
    else if (message.type === 'lost')
      this.events.lost(message.endpointId, message.instanceId, message.reason);
    else this.events.counted(message.requests);
  }

  #all(order: Order): Promise<(Done | undefined)[]> {
    return Promise.all([...this.#fronts.values()].map((front) => this.#order(front, order)));
  }

  /** @returns the answer, or undefined when the front ended before it could give one */
  async #order(front: FrontProcess, order: Order): Promise<Done | undefined> {
    await front.greeted;
    const seq = ++this.#seq;
    return new Promise((resolve) => {
      if (!front.worker.isConnected()) return resolve(undefined);
      front.waiting.set(seq, (answer) => {
        front.waiting.delete(seq);
        resolve(answer);
      });
      front.worker.send({ ...order, seq } as ToFront);
    });
  }
}

function millisecondsSince(moment: number): number {
  return Math.round(performance.now() - moment);
}
