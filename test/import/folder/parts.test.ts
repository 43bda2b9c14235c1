/** A folder is the same after it was sent in parts. */
import { isDeepStrictEqual } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { expect } from 'chai';
import fc from 'fast-check';
import type { Folder } from '../../../src/import/folder/folder.js';
import { FolderParts, partsOf } from '../../../src/import/folder/parts.js';

const FILE = { digest: 'd', size: 1 };

describe('a folder in parts', () => {
  /** As messages of processes are. */
  const sent = <T>(value: T): T => deserialize(serialize(value)) as T;
  const received = (folder: Folder) => {
    const parts = new FolderParts();
    for (const part of partsOf(folder)) parts.add(sent(part));
    return parts.folder();
  };
  const folderOf = (endpoints: readonly unknown[], codes: readonly (readonly [string, string])[] = []) => ({
    head: [{ name: 'stack', value: 'shop', place: 'edge.yaml:1' }],
    lists: {
      endpoints: endpoints.map((value, at) => ({ value, place: `edge.yaml:${at}`, members: { a: 'x' } })),
    },
    sources: new Map(
      codes.map(([entry, code]) => [
        entry,
        {
          ...{ code, entry, files: { 'a.txt': FILE }, lock: null, problems: [] },
          ...{ cargo: null, cargoProblems: [] },
        },
      ]),
    ),
    contents: new Map(codes.map(([, code]) => [FILE.digest, Buffer.from(code)])),
  });

  it('is put together again, with what is no JSON, and objects that are larger than a part', () => {
    const long = fc.constantFrom('x', 'é'.repeat(100_000), 'y'.repeat(300_000));
    const value = fc.oneof(
      fc.jsonValue(),
      fc.constantFrom(Number.NaN, Number.POSITIVE_INFINITY),
      fc.dictionary(fc.constantFrom('a', '10', '2', '__proto__', 'constructor'), fc.array(long)),
      fc.array(fc.record({ body: long, headers: fc.dictionary(fc.string(), long) }), { maxLength: 4 }),
    );
    fc.assert(
      fc.property(fc.array(value, { minLength: 1, maxLength: 4 }), (values) => {
        const folder = folderOf(values, [['src/a.rs', 'fn main() {}']]);
        expect(isDeepStrictEqual(received(folder), sent(folder))).to.equal(true);
      }),
      { numRuns: 60 },
    );
  });

  it('has no part that is much larger than others, whatever is in an object', () => {
    const values = [
      { schedules: Array.from({ length: 40 }, () => ({ body: 'x'.repeat(100_000) })) },
      {
        policies: { validate: Object.fromEntries(Array.from({ length: 50_000 }, (_, at) => [`m${at}`, {}])) },
      },
      ...Array.from({ length: 300 }, () => ({ description: 'x'.repeat(10_000) })),
    ];
    const parts = [...partsOf(folderOf(values))];
    expect(Math.max(...parts.map((part) => serialize(part).length))).to.be.below(2 * 256 * 1024);
    expect(parts.length).to.be.below(60);
  });
});
