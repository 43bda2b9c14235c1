/** `npm run check`: the tests that docs/PROMISES.md names exist, and run. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ROOT } from './prepare.mjs';

const { WITHOUT_LEVEL } = await import('../dist/test/support/hostile/attacks.js');

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

/** Where a title stands: in what declares a test, or a group of them; in Rust, below the attribute of a test. */
const DECLARATION = /^\s*(?:it|describe)\(|^\s*#\[(?:\w+::)?test\]/;
/** A benchmark has its question as a text, and a check says what it checks in a comment. */
const WITHOUT_DECLARATIONS = /^(?:bench|scripts)\//;
/**
 * What keeps a test from running, or all others. Tests that need root are skipped without it: CI runs as root, and
 * counts skipped tests as failed.
 */
const NOT_RUN =
  /\b(?:it|describe|context)\.(?:skip|only)\b|\bx(?:it|describe)\(|(?<!if \((?:!HAS_UNTRUSTED_USERS|process\.getuid\?\.\(\) !== 0)\) )\bthis\.skip\(|^\s*#\[ignore/m;

const tables = readFileSync(join(ROOT, 'docs/PROMISES.md'), 'utf8');
const links = new Map([...tables.matchAll(LINK)].map(([, name, path]) => [name, path]));
const rows = rowsOf(tables);
const problems = [...rows.flatMap(testProblems), ...linkProblems(), ...levelProblems()];
if (rows.length <= 70) problems.push(`there are only ${rows.length} rows`);
if (problems.length > 0) fail(`docs/PROMISES.md:\n${problems.map((one) => `  ${one}`).join('\n')}`);

function rowsOf(text = '') {
  return text
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| what '))
    .map((line) => {
      const cells = line.replace(/^\| | \|$/g, '').split(' | ');
      const tests = (cells.at(-1) ?? '').split('<br>').map((test) => test.trim());
      return { promise: cells.slice(0, -1).join(': '), tests };
    });
}

/** Tests of a row that do not exist, or do not run. */
function testProblems({ promise, tests }) {
  return tests.flatMap((test) => {
    const [, name = '', title = ''] = NAMED.exec(test) ?? [];
    const path = links.get(name) ?? '';
    if (path === '' || !existsSync(join(ROOT, path))) return [`${promise}: ${test}: there is no such file`];
    const source = readFileSync(join(ROOT, path), 'utf8');
    const places = WITHOUT_DECLARATIONS.test(path) ? [source] : declarationsIn(source);
    return [
      ...(places.some((text) => text.includes(title)) ? [] : [`${promise}: ${test}: there is no such title`]),
      ...(NOT_RUN.test(source) ? [`${promise}: ${test}: tests of the file are skipped`] : []),
    ];
  });
}

/** The lines that declare tests, with the next one, where the formatter has put the title when it is long. */
function declarationsIn(source) {
  const lines = source.split('\n');
  return lines.flatMap((line, at) => {
    if (!DECLARATION.test(line)) return [];
    return /[(\]]$/.test(line.trimEnd()) ? [`${line}${lines[at + 1] ?? ''}`] : [line];
  });
}

/** Links that no row names. */
function linkProblems() {
  const named = new Set(rows.flatMap(({ tests }) => tests.map((test) => NAMED.exec(test)?.[1])));
  return [...links.keys()].filter((name) => !named.has(name)).map((name) => `no row names [${name}]`);
}

/** Tests of attacks run at each level of the sandbox, or `WITHOUT_LEVEL` says why they need not. */
function levelProblems() {
  const sections = new Map(tables.split(/^## /m).map((text) => [text.split('\n')[0], text]));
  const missing = ATTACKS.filter((title) => rowsOf(sections.get(title)).length === 0);
  const tests = ATTACKS.flatMap((title) => rowsOf(sections.get(title)).flatMap((row) => row.tests));
  const names = new Set(tests.map((test) => NAMED.exec(test)?.[1]));
  const without = [...names].filter((name) => {
    const path = join(ROOT, links.get(name) ?? '');
    // Those that do not exist are named above.
    return links.has(name) && existsSync(path) && !AT_EACH_LEVEL.test(readFileSync(path, 'utf8'));
  });
  return [
    ...missing.map((title) => `the section "${title}" has no rows`),
    ...without
      .filter((name) => !Object.hasOwn(WITHOUT_LEVEL, name))
      .map((name) => `[${name}] does not run at each level of the sandbox`),
    ...Object.keys(WITHOUT_LEVEL)
      .filter((name) => !without.includes(name))
      .map((name) => `[${name}] has a reason to run at one level, and no need of it`),
  ];
}
