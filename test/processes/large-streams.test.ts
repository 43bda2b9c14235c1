/** Large streamed responses, whose bytes mostly go through memory that the handler shares with the gateway. */
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { type Stack, startStack } from '../support/processes.js';

/** Streams so many words of 8 bytes (`words`), which are their numbers, in pieces of so many (`piece`). */
const NUMBERS = `
use rust_edge_gateway_sdk::prelude::*;
use std::io::Write;

fn numbers(from: u64, to: u64) -> Vec<u8> {
    (from..to).flat_map(u64::to_le_bytes).collect()
}

fn handle(req: Request) -> StreamResponse {
    let words: u64 = req.query_param_as("words").unwrap_or(0);
    let piece: u64 = req.query_param_as("piece").unwrap_or(1);
    StreamResponse::new(move |out| {
        for from in (0..words).step_by(piece as usize) {
            out.write_all(&numbers(from, words.min(from + piece)))?;
        }
        Ok(())
    })
}
handler_loop!(handle);
`;

const TASKS = NUMBERS.replace('fn handle(req', 'async fn handle(req')
  .replace('StreamResponse::new(move |out| {', 'StreamResponse::new_async(move |mut out| async move {')
  .replace(
    'out.write_all(&numbers(from, words.min(from + piece)))?',
    'out.send(numbers(from, words.min(from + piece))).await?',
  )
  .replace('handler_loop!', 'handler_loop_async!');

const WORDS_PER_MEGABYTE = (1024 * 1024) / 8;
/** What is read of a slow client before it looks away for the next time. */
const SLOW_BYTES = 3 * 1024 * 1024;

describe('large streamed responses', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'], env: { GATEWAY_CONCURRENCY: '1' } });
    await stack.deploy({ path: '/threads', code: NUMBERS });
    await stack.deploy({ path: '/tasks', code: TASKS });
  });
  after(() => stack.close());

  const target = (path: string, megabytes: number, piece: number) =>
    `${path}?words=${megabytes * WORDS_PER_MEGABYTE + 1}&piece=${piece}`;
  const response = async (path: string, megabytes: number, piece = 8192) => {
    const [answer] = (await once(get(stack.gatewayUrl + target(path, megabytes, piece)), 'response')) as [
      IncomingMessage,
    ];
    expect(answer.statusCode).to.equal(200);
    return answer;
  };
  for (const path of ['/threads', '/tasks'])
    describe(`of a handler with ${path.slice(1)}`, () => {
      it('arrive as they were written', async () => {
        for (const piece of [8192, 1_000, 5_003, 100_000])
          await expectNumbers(await response(path, 24, piece), 24);
      });

      it('arrive so for a client that looks away now and then', async () => {
        let seen = 0;
        await expectNumbers(await response(path, 32), 32, async (bytes) => {
          seen += bytes;
          if (seen < SLOW_BYTES) return;
          seen = 0;
          // Longer than a quick client takes.
          await delay(150);
        });
      });

      it('arrive so for more clients at a time than a connection has memories, and again afterwards', async () => {
        for (const megabytes of [12, 5])
          await Promise.all(
            Array.from({ length: 7 }, async () => expectNumbers(await response(path, megabytes), megabytes)),
          );
      });

      it('go on for others when a client leaves', async () => {
        const [left, stays] = [await response(path, 200), await response(path, 48)];
        let bytes = 0;
        for await (const piece of left) {
          bytes += (piece as Buffer).length;
          if (bytes > 8 * 1024 * 1024) break;
        }
        left.destroy();
        await Promise.all([expectNumbers(stays, 48), expectNumbers(await response(path, 24), 24)]);
      });

      it('arrive so over HTTP/2', async () => {
        const client = connectHttp2(stack.gatewayUrl);
        try {
          await expectNumbers(client.request({ ':path': target(path, 12, 8192) }), 12);
        } finally {
          client.destroy();
        }
      });
    });
});

/** All words are their numbers. `wait`: after each piece. */
async function expectNumbers(
  body: AsyncIterable<unknown>,
  megabytes: number,
  wait?: (bytes: number) => Promise<void>,
): Promise<void> {
  let [word, rest] = [0n, Buffer.alloc(0)];
  for await (const piece of body) {
    const bytes = Buffer.concat([rest, piece as Buffer]);
    const whole = bytes.length - (bytes.length % 8);
    for (let at = 0; at < whole; at += 8)
      if (bytes.readBigUInt64LE(at) !== word++) expect(bytes.readBigUInt64LE(at)).to.equal(word - 1n);
    rest = bytes.subarray(whole);
    await wait?.(bytes.length);
  }
  expect([word, rest.length]).to.deep.equal([BigInt(megabytes * WORDS_PER_MEGABYTE + 1), 0]);
}
