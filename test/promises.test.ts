import { existsSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { WITHOUT_LEVEL } from './support/hostile/attacks.js';

const TABLES = readFileSync('docs/PROMISES.md', 'utf8');

/** A test as the tables name it: a link to its file, and a part of its title. */
const NAMED = /^\[([^\]]+)\]: (.+)$/;
/** Where a link leads: `[name]: ../path`. */
const LINK = /^\[([^\]]+)\]: \.\.\/(\S+)$/gm;

/** The sections about attacks of untrusted code. */
const ATTACKS = [
  'Handlers that use too much',
  'Handlers that fail or misbehave',
  'What handlers can reach',
  'Builds',
];
/** What declares tests that run at each level of the sandbox. */
const AT_EACH_LEVEL = /^\s*describeAttacks\(/m;

/** Where a title stands: in what declares a test, or a group of them. */
const DECLARATION = /^\s*(?:it|describe)\(|^\s*(?:pub )?fn \w+\(/;
/**
 * What keeps a test from running, or all others. Tests that need root are skipped without it: CI runs as root, and
 * counts skipped tests as failed.
 */
const NOT_RUN =
  /\b(?:it|describe|context)\.(?:skip|only)\b|\bx(?:it|describe)\(|(?<!if \((?:!HAS_UNTRUSTED_USERS|process\.getuid\?\.\(\) !== 0)\) )\bthis\.skip\(|^\s*#\[ignore/m;

interface Row {
  readonly promise: string;
  readonly tests: readonly string[];
}

const links = new Map([...TABLES.matchAll(LINK)].map(([, name, path]) => [name, path]));

function rows(text = TABLES): Row[] {
  return text
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

describe('the tables of promises', () => {
  for (const { promise, tests } of rows()) {
    it(`name tests that exist for "${promise}"`, () => {
      for (const test of tests) {
        const [, name = '', title = ''] = NAMED.exec(test.trim()) ?? [];
        const path = links.get(name) ?? '';
        expect(existsSync(path), `${test}: the file`).to.equal(true);
        const source = readFileSync(path, 'utf8');
        // A benchmark has its question as a text, a test its title where it is declared.
        const places = path.startsWith('bench/') ? [source] : declared(source);
        expect(
          places.some((text) => text.includes(title)),
          `${test}: the title`,
        ).to.equal(true);
        expect(source, path).not.to.match(NOT_RUN);
      }
    });
  }

  it('have rows', () => {
    expect(rows().length).to.be.above(70);
  });

  it('link nothing that no row names', () => {
    const named = rows().flatMap(({ tests }) => tests.map((test) => NAMED.exec(test.trim())?.[1]));
    expect([...links.keys()].filter((name) => !named.includes(name))).to.deep.equal([]);
  });

  it('name tests of attacks that run at each level of the sandbox, or say why they need not', () => {
    const sections = new Map(TABLES.split(/^## /m).map((text) => [text.split('\n')[0] ?? '', text]));
    const files = new Set<string>();
    for (const title of ATTACKS) {
      const tests = rows(sections.get(title)).flatMap((row) => row.tests);
      expect(tests, title).not.to.deep.equal([]);
      for (const test of tests) files.add(NAMED.exec(test.trim())?.[1] ?? '');
    }
    const without = [...files].filter(
      (name) => !AT_EACH_LEVEL.test(readFileSync(links.get(name) ?? '', 'utf8')),
    );
    expect(without).to.have.members(Object.keys(WITHOUT_LEVEL));
  });
});
