/**
 * A load balancer for several machines: persistent connections, round robin, failover to another machine when a
 * connection is refused, and recovery once the port is open. Nothing else is retried: a failure after a connection was
 * made is a 502 for the client.
 */
import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';

export interface Balancer {
  readonly url: string;
  /** Failures that clients saw, in words. */
  readonly failures: readonly string[];
  close(): Promise<void>;
}

/** A machine that refused a connection is retried after this. */
const RETRY_AFTER_MS = 100;

interface Target {
  readonly url: URL;
  readonly agent: Agent;
  /** Not used before then, unless all are down. */
  downUntil: number;
}

/** Starts a balancer for these servers. */
export async function startBalancer(urls: readonly string[]): Promise<Balancer> {
  const targets: Target[] = urls.map((url) => ({
    url: new URL(url),
    agent: new Agent({ keepAlive: true, maxSockets: 64 }),
    downUntil: 0,
  }));
  const failures: string[] = [];
  let turn = 0;

  const inOrder = (): Target[] => {
    turn = (turn + 1) % targets.length;
    const rotated = [...targets.slice(turn), ...targets.slice(0, turn)];
    const now = performance.now();
    const up = rotated.filter(({ downUntil }) => downUntil <= now);
    return [...up, ...rotated.filter((target) => !up.includes(target))];
  };
  const server = createServer((incoming, outgoing) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const body = Buffer.concat(chunks);
      forward(incoming, body, outgoing, inOrder()).catch((error: Error) => {
        failures.push(`${incoming.method} ${incoming.url}: ${error.message}`);
        outgoing.writeHead(502).end(error.message);
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    failures,
    close: async () => {
      for (const { agent } of targets) agent.destroy();
      await new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      });
    },
  };
}

async function forward(
  incoming: IncomingMessage,
  body: Buffer,
  outgoing: ServerResponse,
  targets: readonly Target[],
): Promise<void> {
  const [target, ...others] = targets;
  if (!target) throw new Error('no machine accepts connections');
  let answer: IncomingMessage;
  try {
    answer = await send(incoming, body, target);
  } catch (thrown) {
    if (!(thrown instanceof Error && 'code' in thrown && thrown.code === 'ECONNREFUSED')) throw thrown;
    target.downUntil = performance.now() + RETRY_AFTER_MS;
    return forward(incoming, body, outgoing, others);
  }
  const { connection: _, 'keep-alive': __, 'transfer-encoding': ___, ...headers } = answer.headers;
  outgoing.writeHead(answer.statusCode ?? 502, headers);
  answer.pipe(outgoing);
  await new Promise<void>((resolve, reject) => {
    answer.once('error', reject).once('end', resolve);
  });
}

function send(incoming: IncomingMessage, body: Buffer, { url, agent }: Target): Promise<IncomingMessage> {
  const { connection: _, 'transfer-encoding': __, ...headers } = incoming.headers;
  return new Promise((resolve, reject) => {
    const path = incoming.url ?? '/';
    const sent = request(
      {
        host: url.hostname,
        port: url.port,
        method: incoming.method ?? 'GET',
        path,
        agent,
        headers: { ...headers, ...(body.length > 0 && { 'content-length': body.length }) },
      },
      resolve,
    );
    sent.once('error', (error: Error) => {
      // A reused connection may have been closed by the server.
      if (sent.reusedSocket) error.message += ' (on a kept connection)';
      reject(error);
    });
    sent.end(body);
  });
}
