/** How soon does a handler know that the client of its stream has left, and is its place among the requests free? */
import { once } from 'node:events';
import { connect } from 'node:net';
import type { Stack } from '../../test/support/processes.js';
import { type Row, round } from './report.js';

const CLIENTS = 100;
/** Longer than anything that the figure could be: the benchmark fails. */
const LIMIT_MS = 10_000;

/** Streams until its client leaves, and counts those of which it has been told. */
const STAYING = `
use rust_edge_gateway_sdk::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};

static LEFT: AtomicUsize = AtomicUsize::new(0);

struct Told;

impl Drop for Told {
    fn drop(&mut self) {
        LEFT.fetch_add(1, Ordering::SeqCst);
    }
}

async fn handle(req: Request) -> StreamResponse {
    if req.query_param("left").is_some() {
        return Response::ok(LEFT.load(Ordering::SeqCst)).into();
    }
    StreamResponse::new_async(|mut out| async move {
        let _told = Told;
        out.send("here").await?;
        std::future::pending().await
    })
}

handler_loop_async!(handle);
`;

/** One client after the other leaves while it waits for more; the endpoint has a place for one request at a time. */
export async function leavingClientsRow({ deploy, gatewayUrl }: Stack): Promise<Row> {
  await deploy({ path: '/staying', code: STAYING, limits: { concurrent_requests: 1 } });
  const times: number[] = [];
  for (let client = 1; client <= CLIENTS; client++) times.push(await leave(gatewayUrl, client));
  const sorted = times.sort((left, right) => left - right);
  return {
    question: 'a client of a stream has left: until its handler is told, and another request has its place',
    measured: `slowest of ${CLIENTS}; median ${round(sorted[CLIENTS / 2] ?? Number.NaN)} ms`,
    value: sorted.at(-1) ?? Number.NaN,
    unit: 'ms',
    bar: { atMost: 100 },
  };
}

/** @returns milliseconds from the moment that the client of this number leaves */
async function leave(gatewayUrl: string, number: number): Promise<number> {
  const { hostname, port } = new URL(gatewayUrl);
  const client = connect(Number(port), hostname);
  client.write('GET /staying HTTP/1.1\r\nHost: localhost\r\n\r\n');
  for (let text = ''; !text.includes('here'); )
    text += ((await once(client, 'data')) as [Buffer])[0].toString('latin1');
  const left = performance.now();
  client.destroy();
  for (;;) {
    const response = await fetch(`${gatewayUrl}/staying?left`);
    const text = await response.text();
    if (response.status === 200 && Number(text) === number) return performance.now() - left;
    // Its place is still taken, or the handler has not been told.
    if (response.status !== 429 && response.status !== 200)
      throw new Error(`The gateway answered ${response.status}: ${text}`);
    if (performance.now() - left > LIMIT_MS)
      throw new Error(`The handler was told of ${text} clients of ${number}, or no place is free`);
  }
}
