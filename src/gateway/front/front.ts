/**
 * The supervisor's side of the front: keeps a process of it running, knows all that a new one has to be told, and
 * replaces one by another without losing a request.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pTimeout from 'p-timeout';
import {
  type Certificate,
  type EndpointInterval,
  type FrontAnswer,
  type RateDescriptor,
  type RequestEntry,
  TRIAL,
} from '../../contracts/front.js';
import { AppError, toError } from '../../errors.js';
import type { HandlerResponse, RouteQuery, RouteResult } from '../../internal/gateway-requests.js';
import type { MetricSnapshot } from '../../metrics/process-metrics.js';
import type { Logger } from '../../util/log.js';
import { FrontCounts } from './front-counts.js';
import { frontMetrics } from './front-metrics.js';
import { type FrontEnd, FrontProcess } from './front-process.js';
import type {
  EndpointState,
  FrontChallenges,
  FrontReport,
  FrontRequest,
  FrontSettings,
  RateStatuses,
  Share,
} from './messages.js';
import { cannotOpen, openPublicSockets, type PublicSockets } from './public-socket.js';
import { NOTHING, StateSender } from './state-sender.js';

/** Events that the front reports. */
export interface FrontEvents {
  /** A request to this instance exceeded its deadline. */
  readonly deadlineExceeded: (endpointId: string, instanceId: number) => void;
  /** The connection to this instance broke while it should serve. */
  readonly connectionLost: (endpointId: string, instanceId: number, reason: string) => void;
  /** A request waits for a handler of this endpoint, which is asleep. */
  readonly wake: (endpointId: string) => void;
  /** Counts a request of a caller on all machines; null when it cannot. */
  readonly take: (rules: readonly RateDescriptor[]) => Promise<RateStatuses | null>;
  /** A token for this endpoint has a key that is not known. */
  readonly unknownKey: (endpointId: string) => void;
  /** Handlers answered so many requests. */
  readonly handled: (requests: number) => void;
  readonly finished: (request: RequestEntry) => void;
  /** So many finished requests of an endpoint had no entry in the log, of which so many have failed. */
  readonly leftOut: (endpointId: string, requests: number, failed: number) => void;
  /** What became of requests in an interval that began then, seconds since 1970. */
  readonly counted: (at: number, endpoints: readonly EndpointInterval[]) => void;
}

/** Dependencies of a front. */
export interface FrontOptions {
  /** The public address: an IP address or a name. */
  readonly host: string;
  readonly port: number;
  /** The port for TLS; undefined for none. */
  readonly tlsPort: number | undefined;
  readonly settings: FrontSettings;
  /** All that a new process is told. */
  readonly states: KnownStates;
  readonly log: Logger;
  readonly events: FrontEvents;
}

/** The states of all endpoints as they were applied last, made when they are needed. */
export interface KnownStates {
  ids(): Iterable<string>;
  stateOf(id: string): EndpointState | undefined;
}

/** A process is started, serves, and is retired when a later one serves. */
type Stage = 'starting' | 'serving' | 'retired';

/** One that ended sooner says that something is wrong with what it serves. */
const SHORT_LIFE_MS = 1_000;
/** After so many short lives in a row there is a pause before each restart, so that they do not take all cores. */
const QUICK_RESTARTS = 10;
const PAUSE_MS = 1_000;
/** One that has not said for so long that all its threads are alive hangs: it is killed, and replaced. */
const UNRESPONSIVE_MS = 10_000;
const PING_EVERY_MS = 1_000;
/** States sent to a new process in one message, to keep messages small. */
const BATCH = 500;

export class Front {
  readonly #options: FrontOptions;
  /** The states of versions that are tried, by their ids; no one else knows these. */
  readonly #trials = new Map<string, EndpointState>();
  /** All that run, in the order of their start. */
  readonly #processes = new Map<FrontProcess, Stage>();
  readonly #counts = new FrontCounts();
  readonly #states = new StateSender();
  #share: Share | undefined;
  #certificates: readonly Certificate[] = [];
  #challenges: FrontChallenges = { http: [], tls: [] };
  #sockets: PublicSockets | undefined;
  #shortLives = 0;
  #isStopping = false;

  constructor(options: FrontOptions) {
    this.#options = options;
  }

  /**
   * Opens the public ports; resolves when they are served.
   * @returns the URLs of the port, and of that for TLS
   * @throws Error when a port cannot be opened, or the program cannot be started
   */
  async start(): Promise<readonly [url: string, tlsUrl: string | undefined]> {
    const { host, port, tlsPort } = this.#options;
    const sockets = await openPublicSockets(host, port, tlsPort);
    this.#sockets = sockets;
    await this.#startProcess(sockets);
    return [sockets.plain.url, sockets.secure?.url];
  }

  /** Tells the front all certificates there are; resolves when new connections get them. */
  async setCertificates(certificates: readonly Certificate[]): Promise<void> {
    this.#certificates = certificates;
    await this.#ask({ type: 'certificates', certificates });
  }

  /** Tells the front all challenges of ACME servers that are pending; resolves when they are answered. */
  async setChallenges(challenges: FrontChallenges): Promise<void> {
    this.#challenges = challenges;
    await this.#ask({ type: 'challenges', ...challenges });
  }

  /** Tells the front of changed endpoints; resolves when all new requests go accordingly. */
  async apply(upserts: readonly EndpointState[], removals: readonly string[] = []): Promise<void> {
    for (const id of removals) this.#trials.delete(id);
    for (const state of upserts) if (state.id.startsWith(TRIAL)) this.#trials.set(state.id, state);
    await this.#states.send(
      () => ({ upserts, removals }),
      () => [...this.#processes.keys()],
      // What has been replaced gets it, but nobody waits for it.
      (process) => this.#processes.get(process) !== 'retired',
    );
  }

  /** Tells the front which part of the limits of rates it lets through. */
  setShare(share: Share): void {
    this.#share = share;
    for (const process of this.#processes.keys()) process.tell(share);
  }

  /** Resolves when no request is in flight in a replaced instance. */
  async drained(instanceId: number): Promise<void> {
    await this.#ask({ type: 'drain', instanceId });
  }

  /**
   * How long endpoints have had no request, milliseconds, in the same order; those that a process does not know have
   * just had one.
   */
  async idleMs(endpointIds: readonly string[]): Promise<number[]> {
    if (endpointIds.length === 0) return [];
    const answers = await this.#ask({ type: 'idle', endpointIds });
    // All that run, because one that has been replaced finishes its requests.
    const known = answers.flatMap((answer) => (answer?.idle ? [answer.idle] : []));
    return endpointIds.map((_id, at) =>
      known.length === 0 ? 0 : Math.min(...known.map((idle) => idle[at] ?? 0)),
    );
  }

  /**
   * Sends a request of the gateway itself to an endpoint, whatever its host, and whether it is enabled.
   * @param head the request line and the headers, as HTTP/1.1
   * @param attempt how often it was sent, if it is sent again when it fails
   * @throws AppError no_gateway when no process serves, or the one that was asked ends before it answers
   */
  async request(
    endpointId: string,
    head: string,
    bodyBase64: string,
    attempt?: number,
  ): Promise<HandlerResponse> {
    const answer = await this.#askOne({
      ...{ type: 'request', endpointId, head, body: bodyBase64 },
      ...(attempt !== undefined && { attempt }),
    });
    if (!answer.response) throw notServed();
    const { body, ...response } = answer.response;
    return { ...response, bodyBase64: body };
  }

  /** Where a request of a client would go. @throws AppError no_gateway as above */
  async route(query: RouteQuery): Promise<RouteResult> {
    const { routed } = await this.#askOne({ type: 'route', ...query });
    if (!routed) throw notServed();
    return routed;
  }

  /** The metrics of each process: more than one while one replaces another. */
  async metrics(): Promise<MetricSnapshot[]> {
    // The states by which the processes count when they get this request.
    const states = new Map(this.#ids().flatMap((id) => this.#stateOf(id).map((state) => [id, state])));
    const answers = await this.#ask({ type: 'metrics' });
    return answers.flatMap((answer) => (answer?.metrics ? [frontMetrics(answer.metrics, states)] : []));
  }

  /**
   * Starts the program anew on the same socket. The old process finishes its requests, in the background, when the new
   * one serves.
   * @throws Error when the new one cannot be started; the old one serves on
   */
  async replace(): Promise<void> {
    if (this.#sockets && !this.#isStopping) await this.#startProcess(this.#sockets);
  }

  /** Closes the ports, and stops all processes after the requests in flight; resolves when they have ended. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#sockets?.plain.close();
    this.#sockets?.secure?.close();
    await Promise.all([...this.#processes.keys()].map((process) => process.stop()));
  }

  /** Resolves when it listens, and those before it have been told to stop. */
  async #startProcess(sockets: PublicSockets): Promise<void> {
    const { settings, log } = this.#options;
    const process: FrontProcess = new FrontProcess(sockets, settings, (report) =>
      this.#receive(process, report),
    );
    this.#processes.set(process, 'starting');
    if (this.#share) process.tell(this.#share);
    if (sockets.secure) void process.request({ type: 'certificates', certificates: this.#certificates });
    void process.request({ type: 'challenges', ...this.#challenges });
    void process.ended.then((how) => this.#ended(process, how));

    const ids = this.#ids();
    for (let at = 0; at < ids.length; at += BATCH) {
      const some = ids.slice(at, at + BATCH);
      // The states when their turn comes: changes are sent meanwhile, and an older state must not undo them.
      await this.#states.send(
        () => ({ upserts: some.flatMap((id) => this.#stateOf(id)), removals: [] }),
        () => [process],
      );
    }
    if (this.#isLate(process)) return;
    await this.#counts.moveTo(process);
    if (this.#isLate(process)) return;
    const answer = await process.request({ type: 'listen' });
    if (this.#isLate(process)) return;
    if (!answer) throw new Error(`The front ended before it listened: ${describe(await process.ended)}`);
    if (answer.error !== undefined) {
      process.kill();
      throw cannotOpen(answer.error);
    }
    this.#processes.set(process, 'serving');
    void this.#watch(process);
    log.info(
      { front: process.pid, ms: Math.round(performance.now() - process.startedAt) },
      'front listening',
    );
    // One that ends has handed its counts over.
    await this.#counts.serves(process);
    for (const older of this.#processes.keys()) {
      if (older === process) break;
      void this.#retire(older);
    }
  }

  /** Whether one that was started later serves already, which ends this one. */
  #isLate(process: FrontProcess): boolean {
    if (process.isStopping) return true;
    const all = [...this.#processes];
    const later = all.slice(all.findIndex(([one]) => one === process) + 1);
    return later.some(([, stage]) => stage === 'serving');
  }

  #ids(): string[] {
    return [...this.#options.states.ids(), ...this.#trials.keys()];
  }

  /** None of one that has been removed meanwhile. */
  #stateOf(id: string): EndpointState[] {
    const state = this.#options.states.stateOf(id) ?? this.#trials.get(id);
    return state ? [state] : [];
  }

  /** Kills a process that hangs. */
  async #watch(process: FrontProcess): Promise<void> {
    while (this.#processes.get(process) === 'serving' && !this.#isStopping) {
      // All threads have to answer; there is nothing to do for them.
      const ping = process.request({ type: 'apply', ...NOTHING, removals: [] });
      const answers = await pTimeout(
        ping.then(() => true),
        { milliseconds: UNRESPONSIVE_MS, fallback: () => false },
      );
      if (!answers && this.#processes.get(process) === 'serving') {
        this.#options.log.error({ front: process.pid }, 'front does not answer, killing it');
        process.kill();
        return;
      }
      await delay(PING_EVERY_MS, undefined, { ref: false });
    }
  }

  /** Lets a process that has been replaced finish its requests. */
  async #retire(process: FrontProcess): Promise<void> {
    if (this.#processes.get(process) === 'retired') return;
    this.#processes.set(process, 'retired');
    await process.stop();
    this.#options.log.info({ front: process.pid }, 'replaced front has ended');
  }

  #ended(process: FrontProcess, { code, signal }: FrontEnd): void {
    const stage = this.#processes.get(process);
    this.#processes.delete(process);
    this.#counts.ended(process, stage !== 'starting');
    // Whoever starts one is told when that fails.
    if (stage !== 'serving' || this.#isStopping) return;
    this.#options.log.error({ front: process.pid, code, signal }, 'front exited, starting another');
    const isShortLife = performance.now() - process.startedAt < SHORT_LIFE_MS;
    this.#shortLives = isShortLife ? this.#shortLives + 1 : 0;
    void this.#restart();
  }

  /** Starts processes until one serves. */
  async #restart(): Promise<void> {
    if (this.#shortLives > QUICK_RESTARTS) {
      this.#options.log.warn(
        { short_lives: this.#shortLives },
        'fronts end at once, pausing before the next',
      );
      await delay(PAUSE_MS);
    }
    for (;;) {
      if (this.#isStopping || !this.#sockets) return;
      try {
        await this.#startProcess(this.#sockets);
        return;
      } catch (thrown) {
        if (this.#isStopping) return;
        this.#options.log.error({ err: toError(thrown) }, 'front could not be started, trying again');
      }
      await delay(PAUSE_MS);
    }
  }

  #receive(process: FrontProcess, report: FrontReport): void {
    const { events, log } = this.#options;
    if (report.type === 'request') events.finished(report);
    else if (report.type === 'leftOut') events.leftOut(report.endpointId, report.requests, report.failed);
    else if (report.type === 'interval') events.counted(report.at, report.endpoints);
    else if (report.type === 'deadlineExceeded')
      events.deadlineExceeded(report.endpointId, report.instanceId);
    else if (report.type === 'connectionLost')
      events.connectionLost(report.endpointId, report.instanceId, report.reason);
    else if (report.type === 'wake') events.wake(report.endpointId);
    else if (report.type === 'take')
      void this.#take(report.rules).then((taken) => process.tell({ type: 'taken', id: report.id, taken }));
    else if (report.type === 'unknownKey') events.unknownKey(report.endpointId);
    else if (report.type === 'handled') events.handled(report.requests);
    else log[report.level]({ front: process.pid, ...report.fields }, report.message);
  }

  #take(rules: readonly RateDescriptor[]): Promise<RateStatuses | null> {
    const { settings, events } = this.#options;
    return settings.sharesRates ? events.take(rules) : this.#counts.take(rules);
  }

  /** Asks the process that serves. */
  async #askOne(request: FrontRequest): Promise<FrontAnswer> {
    const [serving] = [...this.#processes].find(([, stage]) => stage === 'serving') ?? [];
    if (!serving) throw new AppError('gateway_busy', 'The front of the gateway is being started; try again.');
    const answer = await serving.request(request);
    if (!answer) throw notServed();
    return answer;
  }

  /** Asks all processes. */
  #ask(request: FrontRequest): Promise<(FrontAnswer | undefined)[]> {
    return Promise.all([...this.#processes.keys()].map((process) => process.request(request)));
  }
}

function notServed(): AppError {
  return new AppError('no_gateway', 'The front of the gateway has ended; another one is started. Try again.');
}

function describe({ code, signal, error }: FrontEnd): string {
  return error?.message ?? signal ?? `exit code ${code}`;
}
