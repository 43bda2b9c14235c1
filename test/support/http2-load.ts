/** Load over HTTP/2: clients on one connection that send one request after the other, and check every response. */
import { once } from 'node:events';
import { connect, type SecureClientSessionOptions } from 'node:http2';
import { text } from 'node:stream/consumers';

export interface Http2Load {
  /** Requests answered with 200 so far. */
  served(): number;
  /** Lets every client finish its request; resolves with what was wrong. */
  stop(): Promise<readonly string[]>;
}

/**
 * Starts the clients. They POST, and the response has to end with what was sent.
 * @param options with TLS, what the session needs for it
 */
export async function startHttp2Load(
  url: string,
  path: string,
  clients: number,
  options: SecureClientSessionOptions = {},
): Promise<Http2Load> {
  const session = connect(url, options);
  const failures: string[] = [];
  session.on('goaway', (code) => failures.push(`the connection ends: ${code}`));
  await once(session, 'connect');
  session.on('error', (error) => failures.push(String(error)));
  let served = 0;
  let isOver = false;
  const one = async (body: string) => {
    const stream = session.request({ ':method': 'POST', ':path': path });
    let status: number | undefined;
    stream.on('response', (headers) => {
      status = headers[':status'];
    });
    stream.end(body);
    const received = await text(stream);
    if (status === 200 && received.endsWith(` ${body}`)) served++;
    else failures.push(`${status} ${received}`);
  };
  const running = Array.from({ length: clients }, async (_, client) => {
    for (let number = 0; !isOver; number++)
      await one(`${client}/${number}`).catch((error: unknown) => failures.push(String(error)));
  });
  return {
    served: () => served,
    stop: async () => {
      isOver = true;
      await Promise.all(running);
      session.destroy();
      return failures;
    },
  };
}
