/**
 * Starts the processes of services by a native program, `rust/starter`, which has what it takes to run them as other
 * users, and is told the rest by whoever starts it. They end with it, and it ends with this process.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { createServer, type Server, type Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import pTimeout from 'p-timeout';
import type { Report, Request } from '../../contracts/starter.js';
import type { ServiceType } from '../../model/service-configs.js';
import type { SqliteFolders } from '../../model/sqlite-folders.js';
import { readLines } from '../../util/lines.js';
import type { FromService, ToService } from './messages.js';
import { programName } from './programs.js';

/** A file system of a network may not answer. */
const LOOK_MS = 10_000;
/** Characters of a message of a process: a text of a backend is shortened before. */
const LONGEST_MESSAGE = 16 * 1024 * 1024;

/** A process to be started. */
export interface ToStart {
  readonly service: { readonly id: string; readonly type: ServiceType };
  /** What it may use besides what its program needs for itself, MiB. */
  readonly memoryMb: number;
  /** Which of the folders of sqlite services has its file. */
  readonly sqliteFolder: number | undefined;
  /** Whether it serves: then it has a folder for a socket both for handlers, and for the actor host. */
  readonly serves: boolean;
}

export interface ProcessListener {
  /** @param name of the folders of its sockets, if it serves */
  onStarted(pid: number, name: string | undefined): void;
  onMessage(message: FromService): void;
  /**
   * Called once, after all messages.
   * @param how it has ended, or why it was not started
   * @param printed the last of it
   */
  onEnd(how: string, printed: string): void;
}

/** A process that was asked for. */
export interface StartedProcess {
  send(message: ToService): void;
  kill(): void;
}

/** What there is of the file of a sqlite service. */
export interface SeenFile {
  /** All of the folders of sqlite services, with links followed. */
  readonly folders: SqliteFolders;
  /** Whether its folder is one of root, who runs no services. */
  readonly belongsToRoot: boolean;
  readonly exists: boolean;
}

export class Starter {
  readonly #control: Duplex;
  readonly #server: Server;
  readonly #runs = new Map<number, Run>();
  /** Those whose channel has not arrived, by the line with which it begins. */
  readonly #channels = new Map<string, Run>();
  readonly #looks = new Map<number, { resolve(seen: SeenFile): void; reject(error: Error): void }>();
  readonly #ended: Promise<void>;
  /** The number of the last run or look; both are counted together. */
  #lastNumber = 0;
  #isClosing = false;

  /**
   * @param control the channel to the program
   * @param channels the socket to which it opens those of processes
   * @param onLost called when it ends by itself, and all processes with it
   */
  static async open(control: Duplex, channels: string, onLost: () => void): Promise<Starter> {
    await rm(channels, { force: true });
    const server = createServer();
    await once(server.listen(channels), 'listening');
    return new Starter(control, server, onLost);
  }

  private constructor(control: Duplex, server: Server, onLost: () => void) {
    this.#server = server.on('connection', (socket) => this.#connected(socket));
    this.#control = control;
    // Its end is told below.
    control.on('error', () => undefined);
    readLines(control, (line) => this.#receive(JSON.parse(line) as Report));
    this.#ended = once(control, 'close').then(() => {
      for (const number of [...this.#runs.keys()]) this.#end(number, 'its starter has ended', '');
      for (const { reject } of this.#looks.values()) reject(new Error('the starter of services has ended'));
      if (!this.#isClosing) onLost();
    });
  }

  /** Starts a process. A failure to start is an end, which is told later. */
  start({ service, sqliteFolder, ...what }: ToStart, listener: ProcessListener): StartedProcess {
    const number = ++this.#lastNumber;
    const run = new Run(listener);
    this.#runs.set(number, run);
    this.#channels.set(run.channel, run);
    const program = programName(service.type);
    const folder = sqliteFolder === undefined ? {} : { sqliteFolder };
    this.#tell({
      start: { run: number, channel: run.channel, program, service: service.id, ...folder, ...what },
    });
    return {
      send: (message) => run.send(message),
      kill: () => this.#tell({ kill: { run: number } }),
    };
  }

  /**
   * What there is of the file of a sqlite service, which this process may not see itself.
   * @param folder which of the folders of sqlite services has it
   */
  look(folder: number, file: string): Promise<SeenFile> {
    const look = ++this.#lastNumber;
    const seen = new Promise<SeenFile>((resolve, reject) => {
      this.#looks.set(look, { resolve, reject });
      this.#tell({ look: { look, folder, file } });
    }).finally(() => this.#looks.delete(look));
    return pTimeout(seen, { milliseconds: LOOK_MS, message: `${file}: its file system does not answer` });
  }

  /** Ends the program, and with it all processes that it has started. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#control.end();
    await this.#ended;
    this.#server.close();
  }

  #tell(request: Request): void {
    if (this.#control.writable) this.#control.write(`${JSON.stringify(request)}\n`);
  }

  #receive(report: Report): void {
    if ('looked' in report) {
      const { look, folders, ...seen } = report.looked;
      // There is one at least, which the starter is started with.
      this.#looks.get(look)?.resolve({ ...seen, folders: folders as SqliteFolders });
    } else if ('ended' in report) this.#end(report.ended.run, report.ended.how, report.ended.printed);
    else this.#runs.get(report.started.run)?.started(report.started.pid, report.started.name);
  }

  #end(number: number, how: string, printed: string): void {
    const run = this.#runs.get(number);
    // Its channel may still arrive.
    void run?.end(how, printed).then(() => {
      this.#runs.delete(number);
      this.#channels.delete(run.channel);
    });
  }

  /** A channel begins with a line that only its process was given: others may be able to connect, too. */
  #connected(socket: Socket): void {
    // It ends with its process, which others are told.
    socket.on('error', () => undefined);
    let run: Run | undefined;
    const receive = (line: string) => {
      if (run) {
        run.receive(line);
        return;
      }
      run = this.#channels.get(line);
      this.#channels.delete(line);
      if (run) run.connected(socket);
      else socket.destroy();
    };
    readLines(socket, receive, LONGEST_MESSAGE);
  }
}

/** One process, as far as it is known here. */
class Run {
  /** The line with which its channel begins. */
  readonly channel = randomBytes(32).toString('base64url');
  readonly #listener: ProcessListener;
  #socket: Socket | undefined;
  readonly #unsent: ToService[] = [];
  #hasStarted = false;
  #onClosed: () => void = () => undefined;
  readonly #closed = new Promise<void>((resolve) => {
    this.#onClosed = resolve;
  });

  constructor(listener: ProcessListener) {
    this.#listener = listener;
  }

  connected(socket: Socket): void {
    this.#socket = socket.once('close', this.#onClosed);
    for (const message of this.#unsent.splice(0)) this.send(message);
  }

  started(pid: number, name: string | undefined): void {
    this.#hasStarted = true;
    this.#listener.onStarted(pid, name);
  }

  send(message: ToService): void {
    if (!this.#socket) this.#unsent.push(message);
    else if (this.#socket.writable) this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  receive(line: string): void {
    try {
      this.#listener.onMessage(JSON.parse(line) as FromService);
    } catch {
      // It says what no program of ours does, and must not end others: without a channel it ends.
      this.#socket?.destroy();
    }
  }

  /** One that was started has a channel, whose last messages say why it has ended. */
  async end(how: string, printed: string): Promise<void> {
    if (this.#hasStarted) await this.#closed;
    this.#listener.onEnd(how, printed);
  }
}
