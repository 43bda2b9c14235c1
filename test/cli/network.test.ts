/** `edge` by way of a proxy, and with certificates of an authority of one's own. */
import { once } from 'node:events';
import { createServer as createHttp, type IncomingMessage, request, type Server } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { type Certificates, makeCertificates } from '../support/certificates.js';
import { edge } from '../support/edge.js';
import { type TempDir, tempDir } from '../support/temp.js';

const KEY = 'the key of the tests';

describe('edge over the network', function () {
  this.timeout(60_000);
  let folder: TempDir;
  let api: TestApi;
  let certificates: Certificates;
  let tls: Server;
  let proxy: Server;
  let tlsUrl: string;
  let env: Record<string, string>;
  const connected: string[] = [];
  const sockets = new Set<Socket>();

  before(async () => {
    folder = await tempDir('network');
    api = await startApi({ config: { API_KEY: KEY } });
    certificates = await makeCertificates(folder.path, ['127.0.0.1']);
    const { cert, key } = certificates;
    // TLS in front of the API, as a load balancer has it.
    tls = createHttps({ cert: cert.pem, key: key.pem }, (incoming, response) => {
      const { url = '', method, headers } = incoming as IncomingMessage;
      const outgoing = request(`${api.url}${url}`, { method, headers, agent: false }, (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      });
      incoming.pipe(outgoing);
    }).listen(0, '127.0.0.1');
    await once(tls, 'listening');
    tlsUrl = `https://127.0.0.1:${(tls.address() as AddressInfo).port}`;
    proxy = createHttp((_, response) => response.writeHead(501).end()).listen(0, '127.0.0.1');
    proxy.on('connect', ({ url = '' }: IncomingMessage, client: Socket) => {
      connected.push(url);
      const [host, port] = url.split(':');
      const upstream = connect(Number(port), host ?? '', () => {
        client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
        upstream.pipe(client).pipe(upstream);
      });
      for (const socket of [client, upstream]) {
        sockets.add(socket);
        socket.on('error', () => undefined);
      }
    });
    await once(proxy, 'listening');
    env = { XDG_CONFIG_HOME: folder.path, EDGE_URL: tlsUrl, EDGE_TOKEN: KEY };
  });
  after(async () => {
    for (const socket of sockets) socket.destroy();
    for (const server of [tls, proxy]) {
      server?.closeAllConnections();
      await new Promise((resolve) => server?.close(resolve));
    }
    await api?.close();
    await folder?.remove();
  });
  beforeEach(() => connected.splice(0));

  const proxyUrl = () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const trusting = () => ({ ...env, NODE_EXTRA_CA_CERTS: certificates.ca.path });

  it('edge refuses a certificate of an unknown authority, and names NODE_EXTRA_CA_CERTS', async () => {
    const { code, stderr } = await edge(['whoami'], { env });
    expect(code).to.equal(1);
    expect(stderr).to.include(tlsUrl).and.include('NODE_EXTRA_CA_CERTS');
    const trusted = await edge(['whoami', '--json'], { env: trusting() });
    expect(trusted.code, trusted.stderr).to.equal(0);
    expect(JSON.parse(trusted.stdout)).to.include({ url: tlsUrl, kind: 'api_key' });
  });

  it('edge connects through HTTPS_PROXY and HTTP_PROXY, except to hosts of NO_PROXY', async () => {
    const through = await edge(['whoami'], { env: { ...trusting(), HTTPS_PROXY: proxyUrl() } });
    expect(through.code, through.stderr).to.equal(0);
    expect(connected).to.deep.equal([new URL(tlsUrl).host]);
    const plain = { ...env, EDGE_URL: api.url, http_proxy: proxyUrl() };
    expect((await edge(['whoami'], { env: plain })).code).to.equal(0);
    expect(connected).to.have.length(2);
    await edge(['whoami'], { env: { ...plain, NO_PROXY: '127.0.0.1' } });
    expect(connected).to.have.length(2);
  });

  it('edge import sends a file through a proxy', async () => {
    const zip = join('test', 'cli', 'network.test.ts');
    const args = ['import', 'bundle', zip, '--domain', '*', '--dry-run'];
    const { code, stderr } = await edge(args, { env: { ...trusting(), HTTPS_PROXY: proxyUrl() } });
    expect(code).to.equal(1);
    expect(stderr).to.include('(invalid_bundle)');
  });

  it('edge reports that a proxy cannot be reached', async () => {
    const { code, stderr } = await edge(['whoami'], {
      env: { ...trusting(), HTTPS_PROXY: 'http://127.0.0.1:1' },
    });
    expect(code).to.equal(1);
    expect(stderr)
      .to.include('cannot be reached')
      .and.not.match(/\n\s+at /);
  });
});
