/** Large streamed responses, whose bytes mostly go through memory that the handler shares with the gateway. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { get, type IncomingMessage } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { frontOf } from '../../support/process-state.js';
import { must, type Stack, startStack } from '../../support/processes.js';

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

/** The same, while another thread writes into all memory that is shared, and tries to give its pages back. */
const SPOILS = NUMBERS.replace(
  'fn handle(req: Request) -> StreamResponse {',
  `
extern "C" {
    fn madvise(start: *mut u8, bytes: usize, advice: i32) -> i32;
}
const MADV_REMOVE: i32 = 9;

fn shared() -> Vec<(usize, usize)> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let lines = maps.lines().filter(|line| line.contains("memfd:stream"));
    let address = |text: &str| usize::from_str_radix(text, 16).unwrap_or_default();
    lines.filter_map(|line| line.split(' ').next()?.split_once('-')).map(|(from, to)| (address(from), address(to))).collect()
}

fn spoil() {
    loop {
        for (from, to) in shared() {
            unsafe {
                madvise(from as *mut u8, to - from, MADV_REMOVE);
                std::ptr::write_bytes(from as *mut u8, b'!', to - from);
            }
        }
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
}

fn handle(req: Request) -> StreamResponse {
    static SPOILING: std::sync::Once = std::sync::Once::new();
    SPOILING.call_once(|| drop(std::thread::spawn(spoil)));`,
);

const WORDS_PER_MEGABYTE = (1024 * 1024) / 8;
/** What is read of a slow client before it looks away for the next time. */
const SLOW_BYTES = 3 * 1024 * 1024;

describe('large streamed responses', () => {
  let stack: Stack;
  const ids = new Map<string, string>();
  before(async () => {
    stack = await startStack({ processes: ['web', 'worker', 'gateway'], env: { GATEWAY_CONCURRENCY: '1' } });
    const codes = { '/threads': NUMBERS, '/tasks': TASKS, '/spoils': SPOILS, '/http2': NUMBERS };
    for (const [path, code] of Object.entries(codes)) ids.set(path, await stack.deploy({ path, code }));
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
  const pidOf = async (path: string) =>
    ((await must(stack.api.get(`/api/endpoints/${ids.get(path)}`))) as { pid: number }).pid;

  for (const path of ['/threads', '/tasks'])
    describe(`of a handler with ${path.slice(1)}`, () => {
      it('a large streamed response arrives as it was written', async () => {
        for (const piece of [8192, 1_000, 5_003, 100_000])
          await expectNumbers(await response(path, 24, piece), 24);
      });

      it('a large streamed response arrives unchanged at a client that stops reading now and then', async () => {
        let seen = 0;
        await expectNumbers(await response(path, 32), 32, async (bytes) => {
          seen += bytes;
          if (seen < SLOW_BYTES) return;
          seen = 0;
          // Longer than a quick client takes.
          await delay(150);
        });
      });

      it('large streamed responses arrive unchanged at more clients than a connection has memories, and again afterwards', async () => {
        for (const megabytes of [12, 5])
          await Promise.all(
            Array.from({ length: 7 }, async () => expectNumbers(await response(path, megabytes), megabytes)),
          );
      });

      it('large streamed responses continue for others when a client leaves', async () => {
        const [left, stays] = [await response(path, 200), await response(path, 48)];
        let bytes = 0;
        for await (const piece of left) {
          bytes += (piece as Buffer).length;
          if (bytes > 8 * 1024 * 1024) break;
        }
        left.destroy();
        await Promise.all([expectNumbers(stays, 48), expectNumbers(await response(path, 24), 24)]);
      });
    });

  describe('and the memory', () => {
    it('large streamed responses keep their length whatever a handler does to shared memory, and others are not touched', async () => {
      const spoilt = async () => {
        const answer = await response('/spoils', 64);
        let bytes = 0;
        let isSpoilt = false;
        for await (const piece of answer) {
          bytes += (piece as Buffer).length;
          isSpoilt ||= (piece as Buffer).includes('!!!!!!!!');
        }
        expect([answer.complete, bytes]).to.deep.equal([true, 64 * 1024 * 1024 + 8]);
        return isSpoilt;
      };
      // On a busy machine a client may be too slow for it.
      await eventually(async () => {
        const [isSpoilt] = await Promise.all([
          spoilt(),
          response('/threads', 48).then((other) => expectNumbers(other, 48)),
        ]);
        expect(isSpoilt).to.equal(true);
      });
    });

    it('shared memory of large streams is little, taken only while they are sent, and not given for HTTP/2', async () => {
      const shared = async (pid: number | undefined) => {
        const areas = (await readFile(`/proc/${pid}/smaps`, 'utf8')).split(/\n(?=[0-9a-f]+-)/);
        return areas
          .filter((area) => area.includes('memfd:stream'))
          .map((area) => /^Rss: +(.*)$/m.exec(area)?.[1]);
      };
      const client = connectHttp2(stack.gatewayUrl);
      try {
        await expectNumbers(client.request({ ':path': target('/http2', 24, 8192) }), 24);
      } finally {
        client.destroy();
      }
      expect(await shared(await pidOf('/http2'))).to.deep.equal([]);
      for (const path of ['/threads', '/tasks'])
        await eventually(async () => {
          await expectNumbers(await response(path, 24), 24);
          expect(await shared(await pidOf(path))).to.have.length.within(1, 4);
        });
      const front = frontOf(stack.processes.get('gateway')?.pid ?? 0);
      await eventually(async () => expect(new Set(await shared(front))).to.deep.equal(new Set(['0 kB'])));
      // Of three handlers.
      expect(await shared(front)).to.have.length.below(13);
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
