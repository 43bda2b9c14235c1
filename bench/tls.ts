/** What does TLS cost a request on a kept connection, and how many clients a second can begin one? */
import { startAuthority } from '../test/support/authority.js';
import { freePort } from '../test/support/ports.js';
import { must } from '../test/support/processes.js';
import { SECRET_KEY } from '../test/support/test-services.js';
import { withStacks } from './support/gateway.js';
import { SMALL_JSON } from './support/handlers.js';
import { type LoadResult, load } from './support/load.js';
import { type Benchmark, runAlone } from './support/main.js';
import { round } from './support/report.js';
import { measureInTurn, medianOf, ratioOf } from './support/rounds.js';

const ROUNDS = 7;
const SECONDS = 3;
const CONNECTIONS = 64;
/** wrk names the host of its URL to the server. */
const HOST = 'localhost';
const PATH = '/hello/ada';
const ONE_REQUEST = 'wrk.headers["Connection"] = "close"\n';

export const tls: Benchmark = async () => {
  const authority = await startAuthority();
  const port = await freePort();
  const env = { GATEWAY_CONCURRENCY: '1', TLS_PORT: String(port), SECRET_KEY };
  try {
    return await withStacks([{ env }], async (stack) => {
      if (!stack) throw new Error('no stack');
      const { id } = (await must(stack.api.post('/api/domains', { name: 'TLS', host: HOST }))) as {
        id: string;
      };
      await must(stack.api.put(`/api/domains/${id}/certificate`, await authority.issue([HOST])));
      await stack.deploy({ path: '/hello/{name}', code: SMALL_JSON, domain: HOST });
      const urls = {
        plain: `http://${HOST}:${new URL(stack.gatewayUrl).port}${PATH}`,
        secure: `https://${HOST}:${port}${PATH}`,
      };
      const measure = (of: keyof typeof urls, script?: string) => () =>
        load({ url: urls[of], seconds: SECONDS, connections: CONNECTIONS, ...(script && { script }) });
      const rounds = await measureInTurn(ROUNDS, {
        plain: measure('plain'),
        secure: measure('secure'),
        plainOnce: measure('plain', ONE_REQUEST),
        secureOnce: measure('secure', ONE_REQUEST),
      });
      type Kind = keyof (typeof rounds)[number];
      const rps = (of: Kind) => round(medianOf(rounds, of, requestsPerSecond));
      const handshakes = `${rps('secureOnce')} full handshakes/s with ECDSA P-256 and a request each, against ${rps('plainOnce')} connections/s`;
      return [
        {
          question: 'requests/s with one thread over TLS 1.3, 64 kept connections, against without TLS',
          measured: `${rps('secure')}/s against ${rps('plain')}/s; ${handshakes}`,
          value: ratioOf(rounds, 'secure', 'plain', requestsPerSecond),
          unit: 'x',
          bar: { atLeast: 0.85 },
        },
      ];
    });
  } finally {
    await authority.remove();
  }
};

function requestsPerSecond(result: LoadResult): number {
  return result.requestsPerSecond;
}

await runAlone(import.meta.url, tls);
