/** Raw HTTP: sends bytes that no HTTP client would send, and parses the responses. */
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { eventually } from './eventually.js';

/** A raw response. */
export interface RawAnswer {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A connection that sends raw bytes. */
export class RawConnection {
  #received = '';
  #isEnded = false;
  #isClosed = false;

  private constructor(readonly socket: Socket) {
    socket.setEncoding('latin1').on('data', (text: string) => {
      this.#received += text;
    });
    socket.on('end', () => {
      this.#isEnded = true;
    });
    // Some tests expect the server to close while we send.
    socket.on('error', () => undefined);
    socket.on('close', () => {
      this.#isClosed = true;
    });
  }

  static async open(url: string, localAddress?: string): Promise<RawConnection> {
    const { hostname, port } = new URL(url);
    const socket = connect({
      port: Number(port),
      host: hostname,
      // The end of the other side must not end ours.
      allowHalfOpen: true,
      ...(localAddress !== undefined && { localAddress }),
    });
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    return new RawConnection(socket);
  }

  send(bytes: string): this {
    this.socket.write(bytes, 'latin1');
    return this;
  }

  /** Resolves when the server, on this machine, has read all that was sent. */
  read(): Promise<void> {
    const port = `:${(this.socket.localPort ?? 0).toString(16).toUpperCase().padStart(4, '0')}`;
    return eventually(async () => {
      const lines = (await readFile('/proc/net/tcp', 'utf8'))
        .split('\n')
        .map((line) => line.trim().split(/\s+/));
      const ends = lines.filter(([, local, remote]) => local?.endsWith(port) || remote?.endsWith(port));
      // Sent, and received, by the kernel but not yet by the other side.
      const queues = ends.map((fields) => fields[4]);
      if (
        this.socket.writableLength > 0 ||
        queues.length < 2 ||
        queues.some((queue) => queue !== '00000000:00000000')
      )
        throw new Error(`The server does not read: ${queues.join(' ')}`);
    });
  }

  /** All complete responses, final ones only. */
  get answers(): readonly RawAnswer[] {
    return parse(this.#received).filter(({ status }) => status >= 200);
  }

  /** All received bytes, including incomplete or invalid responses. */
  get received(): string {
    return this.#received;
  }

  /** Whether the server has closed its sending side. */
  get isEnded(): boolean {
    return this.#isEnded || this.#isClosed;
  }

  /** Resolves with all answers once there are so many. */
  answered(count: number): Promise<readonly RawAnswer[]> {
    return eventually(() => {
      if (this.answers.length < count)
        throw new Error(`${this.answers.length} answers of ${count}: ${JSON.stringify(this.#received)}`);
      return this.answers;
    });
  }

  /** Resolves with all answers once the server has closed its side. */
  async ended(limitMs?: number): Promise<readonly RawAnswer[]> {
    await eventually(() => {
      if (!this.isEnded) throw new Error(`The server does not close: ${JSON.stringify(this.#received)}`);
    }, limitMs);
    return this.answers;
  }

  close(): void {
    this.socket.destroy();
  }
}

/** Opens connections for a suite, and closes them after each of its tests. */
export function connector(): (url: string) => Promise<RawConnection> {
  const open: RawConnection[] = [];
  afterEach(() => {
    for (const connection of open.splice(0)) connection.close();
  });
  return async (url) => {
    const connection = await RawConnection.open(url);
    open.push(connection);
    return connection;
  };
}

/** Sends bytes on a connection of their own; resolves with what comes back until the server closes. */
export async function rawExchange(url: string, bytes: string): Promise<readonly RawAnswer[]> {
  const connection = await RawConnection.open(url);
  try {
    return await connection.send(bytes).ended();
  } finally {
    connection.close();
  }
}

function parse(text: string): RawAnswer[] {
  const answers: RawAnswer[] = [];
  for (let rest = text; rest !== ''; ) {
    const end = rest.indexOf('\r\n\r\n');
    if (end === -1) break;
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n');
    const [, status] = /^HTTP\/1\.1 (\d{3}) /.exec(first) ?? [];
    if (status === undefined) throw new Error(`Not an answer: ${JSON.stringify(rest.slice(0, 200))}`);
    const headers = Object.fromEntries(
      lines.map((line) => {
        const colon = line.indexOf(':');
        return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
      }),
    );
    const length = Number(headers['content-length'] ?? 0);
    const start = end + 4;
    if (rest.length < start + length) break;
    answers.push({ status: Number(status), headers, body: rest.slice(start, start + length) });
    rest = rest.slice(start + length);
  }
  return answers;
}
