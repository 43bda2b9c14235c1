/** Compressed answers, from the API to the client. Other cases are in `rust/front/tests/front/policies`. */
import * as zlib from 'node:zlib';
import { expect } from 'chai';
import { type PolicyStack, startPolicyStack } from '../../support/policies.js';
import { STREAMS } from '../../support/streaming-sources.js';

const { brotliDecompressSync, gunzipSync } = zlib;

/** Node.js has zstd from 22.15 on. */
const UNPACK: Record<string, ((body: Buffer) => Buffer) | undefined> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  zstd: (zlib as unknown as Record<string, (body: Buffer) => Buffer>)['zstdDecompressSync'],
};

describe('the policy compress', function () {
  this.timeout(180_000);
  let one: PolicyStack;
  before(async () => {
    one = await startPolicyStack();
    await one.set(one.domain, { compress: { min_bytes: 1000 } });
  });
  after(() => one?.close());
  const get = (query: string, accepted?: string, method = 'GET') =>
    one.send({
      path: `/shown?${query}`,
      method,
      headers: accepted === undefined ? {} : { 'accept-encoding': accepted },
    });
  const encodingOf = async (query: string, accepted?: string) =>
    (await get(query, accepted)).headers['content-encoding'];

  it('compresses responses with the encoding that the client prefers', async () => {
    const plain = await get('length=100000');
    expect(plain.headers).not.to.have.property('content-encoding');
    expect(plain.headers['vary']).to.equal('Accept-Encoding');
    for (const [accepted, encoding] of [
      ['gzip', 'gzip'],
      ['br', 'br'],
      ['zstd', 'zstd'],
      ['gzip, deflate, br, zstd', 'br'],
      ['gzip, br;q=0.5', 'gzip'],
      ['*', 'br'],
      ['*, br;q=0', 'zstd'],
    ] as const) {
      const { headers, body } = await get('length=100000', accepted);
      expect(headers['content-encoding'], accepted).to.equal(encoding);
      expect(body.length)
        .to.equal(Number(headers['content-length']))
        .and.be.lessThan(plain.body.length / 10);
      const unpacked = UNPACK[encoding]?.(body);
      if (unpacked) expect(JSON.parse(unpacked.toString())).to.have.property('filler');
    }
    for (const accepted of ['identity', 'deflate', 'gzip;q=0', 'br;q=0, gzip;q=0, zstd;q=0, *', ''])
      expect(await encodingOf('length=100000', accepted), accepted).to.equal(undefined);
  });

  it('leaves streamed responses uncompressed, with Vary: Accept-Encoding', async () => {
    await one.stack.deploy({ path: '/streamed', domain: one.host, code: STREAMS });
    const { headers, text } = await one.send({
      path: '/streamed?do=much&kib=100',
      headers: { 'accept-encoding': 'gzip' },
    });
    expect(headers).not.to.have.property('content-encoding');
    expect(headers).to.include({ vary: 'Accept-Encoding', 'transfer-encoding': 'chunked' });
    expect(text).to.equal('x'.repeat(100 * 1024));
  });
});
