/** What is large is written with pauses, in which other tasks run. */
import { Readable } from 'node:stream';
import { expect } from 'chai';
import { unzipSync } from 'fflate';
import { zipOf } from '../../src/api/apply/zip.js';
import type { EndpointObject, ObjectChange } from '../../src/apply/objects.js';
import { shownPlan } from '../../src/apply/show-plan.js';
import { Pauses } from '../../src/util/pauses.js';

const MEGABYTE = 2 ** 20;

/** @returns how often other tasks ran meanwhile, but for what any promise gives way to */
async function pausesIn<T>(work: () => Promise<T>): Promise<{ readonly pauses: number; readonly result: T }> {
  let pauses = 0;
  let isDone = false;
  const count = () => {
    pauses++;
    if (!isDone) setImmediate(count);
  };
  setImmediate(count);
  try {
    return { result: await work(), pauses };
  } finally {
    isDone = true;
  }
}

describe('large answers', () => {
  it('a ZIP of an export is written in parts, with pauses, and has all files', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 64 }, (_, at) => [`src/é${at}.rs`, `${at}`.padEnd(2 * MEGABYTE, 'ü')]),
    );
    const { pauses, result } = await pausesIn(() => Readable.from(zipOf({ ...files, empty: '' })).toArray());
    expect(pauses).to.be.above(5);
    expect(result.length).to.be.above(64);
    const unpacked = Object.entries(unzipSync(Buffer.concat(result as Uint8Array[])));
    const texts = Object.fromEntries(unpacked.map(([path, bytes]) => [path, Buffer.from(bytes).toString()]));
    expect(texts).to.deep.equal({ ...files, empty: '' });
  });

  it('a plan with much new code is shown with pauses', async () => {
    const change = (at: number): ObjectChange => {
      const code = `${at}`.padEnd(2 * MEGABYTE, '\n');
      const after = { kind: 'endpoint', host: 'a.example', method: 'GET', path: `/${at}`, code };
      const fields = [{ path: 'code', before: null, after: code }];
      return { action: 'create', id: null, before: null, after: after as unknown as EndpointObject, fields };
    };
    const changes = Array.from({ length: 32 }, (_, at) => change(at));
    const { pauses, result } = await pausesIn(() =>
      shownPlan({ stack: 's', hash: 'h', changes, warnings: [] }),
    );
    expect(pauses).to.be.above(5);
    expect(result.changes).to.have.length(32);
    expect(result.changes[0]?.fields[0]?.after).to.include({ bytes: 2 * 2 * MEGABYTE + 1 });
  });

  it('lets one of several pausing tasks continue in each turn of the event loop', async () => {
    const begun: string[] = [];
    const work = async (name: string) => {
      const pauses = new Pauses();
      for (let step = 0; step < 3; step++) {
        const until = performance.now() + 6;
        while (performance.now() < until);
        begun.push(name);
        await pauses.here();
      }
    };
    let isDone = false;
    const turn = () => {
      begun.push('turn');
      if (!isDone) setImmediate(turn);
    };
    const all = Promise.all(['a', 'b', 'c'].map(work));
    setImmediate(turn);
    await all;
    isDone = true;
    // All begin; then each turn has one of them.
    const steps = begun.slice(3).join(' ');
    expect(steps.replaceAll('turn', '|')).to.not.match(/[abc] [abc]/);
    expect(begun.filter((name) => name !== 'turn')).to.deep.equal([...'abcabcabc']);
  });
});
