/** Spans that come while others are exported are exported after them. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { expect } from 'chai';
import { Registry } from 'prom-client';
import { OtlpTraces } from '../../src/gateway/telemetry/otlp-traces.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';

const MAX_BATCH = 512;

describe('exporting traces', () => {
  let receiver: Server;
  let traces: OtlpTraces;
  let registry: Registry;
  /** How many spans each export had. */
  let exported: number[];
  let answer: (() => void) | undefined;
  beforeEach(async () => {
    exported = [];
    answer = undefined;
    receiver = createServer((request, response) => {
      void json(request).then((body) => {
        const { resourceSpans } = body as { resourceSpans: [{ scopeSpans: [{ spans: unknown[] }] }] };
        exported.push(resourceSpans[0].scopeSpans[0].spans.length);
        answer = () => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}');
        if (exported.length > 1) answer();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    registry = new Registry();
    traces = new OtlpTraces({
      url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/v1/traces`,
      ...{ headers: {}, service: 'edge', instance: 'one', registry, log: createTestLog().log },
    });
  });
  afterEach(async () => {
    await traces.stop();
    receiver.closeAllConnections();
    await new Promise((resolve) => receiver.close(resolve));
  });

  const calls = (count: number) => {
    for (let made = 0; made < count; made++)
      traces.call({
        ...{ endpointId: 'endpoint', version: 1, requestId: 'request', pool: 'db', operation: 'query' },
        ...{ traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), parentId: 'c'.repeat(16) },
        ...{ error: undefined, ms: 1, endedUs: Date.now() * 1_000, lostSpans: 0 },
      });
  };
  const counts = async () => {
    const { values } = (await registry.getSingleMetric('edge_gateway_spans_total')?.get()) ?? { values: [] };
    return Object.fromEntries(values.map(({ labels, value }) => [labels['outcome'], value]));
  };

  /** Has spans come while the first is exported. */
  const exportMeanwhile = async (later: number) => {
    calls(1);
    await eventually(() => expect(exported).to.deep.equal([1]));
    calls(later);
    answer?.();
    await eventually(async () => expect(await counts()).to.deep.equal({ exported: 1 + later }));
  };

  it('exports spans that come during an export, and loses none', async () => {
    await exportMeanwhile(4);
    expect(exported).to.deep.equal([1, 4]);
  });

  it('exports more spans than one export holds, and loses none', async () => {
    await exportMeanwhile(MAX_BATCH + 3);
    expect(exported).to.deep.equal([1, MAX_BATCH, 3]);
  });
});
