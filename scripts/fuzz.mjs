#!/usr/bin/env node
/**
 * Fuzzes what reads bytes of strangers, handlers and backends in Rust, with libFuzzer, guided by coverage:
 * `npm run fuzz -- [target ...] [--seconds 600]`. What is found stays below `rust/target/fuzz/found`; a test keeps it.
 * Inputs that reach something new are kept for the next run. Needs a C++ compiler, and nothing of a nightly Rust: only
 * instrumentation that a stable one has.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ROOT } from './prepare.mjs';

const RUST = join(ROOT, 'rust');
const TARGET_DIR = join(RUST, 'target/fuzz');
/** Examples of what a target reads, in a folder of its name. */
const SEEDS = join(RUST, 'fuzz-seeds');

/** Targets, and the programs that have them. */
const TARGETS = {
  heads: 'edge-front',
  chunks: 'edge-front',
  'web-socket-frames': 'edge-front',
  frames: 'edge-front',
  'response-heads': 'edge-front',
  policies: 'edge-front',
  validate: 'edge-front',
  'postgres-answers': 'edge-postgres-service',
  'postgres-certificates': 'edge-postgres-service',
  'postgres-sql': 'edge-postgres-service',
  'service-frames': 'edge-postgres-service',
  'sqlite-sql': 'edge-sqlite-service',
};

/** Flags as cargo-fuzz has them without a sanitizer: counters of edges, and the operands of comparisons. */
const RUSTFLAGS = [
  '--cfg=fuzzing',
  '-Cpasses=sancov-module',
  ...['level=4', 'inline-8bit-counters', 'pc-table', 'trace-compares'].map(
    (option) => `-Cllvm-args=-sanitizer-coverage-${option}`,
  ),
  ...['-Cdebug-assertions', '-Coverflow-checks', '-Ccodegen-units=1'],
];
const HOST = /^host: (.*)$/m.exec(execFileSync('rustc', ['-vV'], { encoding: 'utf8' }))?.[1] ?? '';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seconds: { type: 'string', default: '600' }, help: { type: 'boolean', short: 'h' } },
});
const names = positionals.length > 0 ? positionals : Object.keys(TARGETS);
const unknown = names.find((name) => !(name in TARGETS));
if (values.help || unknown !== undefined || !/^[1-9]\d*$/.test(values.seconds)) {
  if (unknown !== undefined) console.error(`There is no target ${unknown}.\n`);
  console.error(
    `npm run fuzz -- [target ...] [--seconds 600 of each]\n\nTargets: ${Object.keys(TARGETS).join(', ')}`,
  );
  process.exit(values.help ? 0 : 2);
}

const packages = [...new Set(names.map((name) => TARGETS[name]))];
run(
  'cargo',
  ['build', '--release', '--target', HOST, ...packages.flatMap((name) => ['-p', name, '--bin', name])],
  {
    ...{ RUSTFLAGS: RUSTFLAGS.join(' '), CARGO_TARGET_DIR: TARGET_DIR },
    // A crash has to name its place.
    CARGO_PROFILE_RELEASE_STRIP: 'none',
  },
);
const failed = names.filter((name) => !fuzz(name));
console.log(
  failed.length === 0
    ? `${names.length} targets, ${values.seconds} s each: nothing was found.`
    : `Found something: ${failed.join(', ')}. Each input is a file in ${join(TARGET_DIR, 'found')}; a test has to keep it.`,
);
process.exit(failed.length === 0 ? 0 : 1);

/** @returns whether nothing was found */
function fuzz(name) {
  const corpus = join(TARGET_DIR, 'corpus', name);
  const found = join(TARGET_DIR, 'found');
  for (const folder of [corpus, found]) mkdirSync(folder, { recursive: true });
  const seeds = join(SEEDS, name);
  console.log(`▸ ${name}`);
  const { status } = spawnSync(
    join(TARGET_DIR, HOST, 'release', TARGETS[name]),
    [
      ...[corpus, ...(existsSync(seeds) ? [seeds] : [])],
      ...[`-artifact_prefix=${join(found, `${name}-`)}`, `-max_total_time=${values.seconds}`],
      ...['-max_len=16384', '-timeout=10', '-rss_limit_mb=2048', '-print_final_stats=1', '-verbosity=0'],
      ...[`-fork=${availableParallelism()}`, '-ignore_timeouts=0', '-ignore_ooms=0'],
    ],
    { stdio: 'inherit', env: { ...process.env, FUZZ_TARGET: name } },
  );
  return status === 0;
}

function run(command, args, env) {
  const { status } = spawnSync(command, args, {
    cwd: RUST,
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  if (status !== 0) process.exit(status ?? 1);
}
