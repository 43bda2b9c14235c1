import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

/** A test as the table names it: `` `path` › title ``. */
const NAMED = /`([^`]+)` › (.+)$/;

interface Row {
  readonly promise: string;
  readonly tests: readonly string[];
}

function rows(): Row[] {
  return readFileSync('docs/PROMISES.md', 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| what '))
    .map((line) => {
      const cells = line.replace(/^\| | \|$/g, '').split(' | ');
      return { promise: cells.slice(0, -1).join(': '), tests: (cells.at(-1) ?? '').split('<br>') };
    });
}

describe('the table of promises', () => {
  for (const { promise, tests } of rows()) {
    it(`names tests that exist for "${promise}"`, () => {
      for (const test of tests) {
        const [, path = '', title = ''] = NAMED.exec(test.trim()) ?? [];
        expect(existsSync(path), `${test}: the file`).to.equal(true);
        expect(readFileSync(path, 'utf8'), path).to.include(title);
      }
    });
  }

  it('has rows', () => {
    expect(rows().length).to.be.above(50);
  });
});
