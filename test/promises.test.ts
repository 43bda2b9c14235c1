import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';

/** A test as the table names it: `` `path` › title ``. */
const NAMED = /`([^`]+)` › (.+)$/;

/** Where a title stands: in what declares a test, or a group of them. */
const DECLARATION = /^\s*(?:it|describe)\(|^\s*(?:pub )?fn \w+\(/;
/** What keeps a test from running, or all others. */
const NOT_RUN =
  /\b(?:it|describe|context)\.(?:skip|only)\b|\bx(?:it|describe)\(|\bthis\.skip\(|^\s*#\[ignore/m;

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

/** The lines that declare tests, with the next one, where the formatter has put the title when it is long. */
function declared(source: string): string[] {
  const lines = source.split('\n');
  return lines.flatMap((line, at) => {
    if (!DECLARATION.test(line)) return [];
    return /\($/.test(line.trimEnd()) ? [`${line}${lines[at + 1] ?? ''}`] : [line];
  });
}

describe('the table of promises', () => {
  for (const { promise, tests } of rows()) {
    it(`names tests that exist for "${promise}"`, () => {
      for (const test of tests) {
        const [, path = '', title = ''] = NAMED.exec(test.trim()) ?? [];
        expect(existsSync(path), `${test}: the file`).to.equal(true);
        const source = readFileSync(path, 'utf8');
        expect(
          declared(source).some((line) => line.includes(title)),
          `${test}: the title`,
        ).to.equal(true);
        expect(source, path).not.to.match(NOT_RUN);
      }
    });
  }

  it('has rows', () => {
    expect(rows().length).to.be.above(50);
  });
});
