/**
 * Builds the programs in rust/ for this machine. They are cached by what they are made of, outside the checkout: a new
 * clone, or a branch that was built before, copies them. Must not import packages.
 */
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fail, ROOT, requireRust, run, step } from './prepare.mjs';

/** Without its tests: who writes one does not build the program anew. */
const FRONT = ['rust/front/Cargo.toml', 'rust/front/src'];
/** What is built together: names of programs here, and as crates; and everything that they are made of. */
const GROUPS = {
  front: {
    title: "the gateway's front, launcher and starter",
    programs: {
      ...{ 'gateway-front': 'edge-front', launcher: 'edge-launcher', starter: 'edge-starter' },
      'execute.node': 'edge-execute',
    },
    sources: [
      ...['scripts/native.mjs', 'rust/wire', ...FRONT, 'rust/launcher', 'rust/starter', 'rust/execute'],
    ],
    // Started before each handler, and with each actor host: loading libraries takes a third of their time.
    linkedStatically: ['edge-launcher', 'edge-starter'],
  },
  tls: {
    title: 'the front with TLS',
    programs: { 'gateway-front-tls': 'edge-front-tls' },
    sources: ['rust/wire', ...FRONT, 'rust/front-tls'],
  },
  services: {
    title: 'the programs of postgres and sqlite services',
    programs: { 'postgres-service': 'edge-postgres-service', 'sqlite-service': 'edge-sqlite-service' },
    sources: ['rust/wire', 'rust/service', 'rust/postgres-service', 'rust/sqlite-service'],
  },
};
const COMMON_SOURCES = ['rust/Cargo.toml', 'rust/Cargo.lock', 'rust/.cargo', 'rust/sdk/core/src/wire'];

/** Where they run from, with the keys of what they are made of; who starts one knows it. */
const NATIVE = join(ROOT, 'dist/native');
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'edge-gateway/native');

/**
 * Builds what is not there yet. A dist/ that was made elsewhere has it.
 * @param names of groups
 */
export async function buildNative(names = Object.keys(GROUPS)) {
  const groups = names
    .map((name) => ({ ...GROUPS[name], keyFile: join(NATIVE, `${name}.sources`), key: keyOf(GROUPS[name]) }))
    .filter(({ programs, keyFile, key }) => {
      return !hasAll(NATIVE, programs) || !existsSync(keyFile) || readFileSync(keyFile, 'utf8') !== key;
    });
  const cacheOf = ({ key }) => join(CACHE, `${key}-${machine()}`);
  const missing = groups.filter((group) => !hasAll(cacheOf(group), group.programs));
  const built = missing.length === 0 ? undefined : await compile(missing);
  for (const group of groups) {
    for (const [name, crate] of Object.entries(group.programs)) {
      const [cached, isNew] = [join(cacheOf(group), name), missing.includes(group)];
      if (isNew) keep(join(built, fileOf(name, crate)), cached);
      place(isNew ? join(built, fileOf(name, crate)) : cached, join(NATIVE, name));
    }
    writeFileSync(group.keyFile, group.key);
  }
}

/** What cargo calls it: a module of Node is a library. */
function fileOf(name, crate) {
  return name.endsWith('.node') ? `lib${crate.replaceAll('-', '_')}.so` : crate;
}

function hasAll(folder, programs) {
  return Object.keys(programs).every((name) => existsSync(join(folder, name)));
}

function keyOf({ sources }) {
  const hash = createHash('sha256');
  for (const file of [...COMMON_SOURCES, ...sources].flatMap(filesOf))
    hash.update(`${file}\0`).update(readFileSync(join(ROOT, file)));
  return hash.digest('hex').slice(0, 32);
}

/** The files of a folder, or the file itself, relative to the root. */
function filesOf(path) {
  if (statSync(join(ROOT, path)).isFile()) return [path];
  return readdirSync(join(ROOT, path))
    .sort()
    .flatMap((name) => filesOf(`${path}/${name}`));
}

/** Where a program runs: processors of this kind, with this library of C. */
function machine() {
  const { glibcVersionRuntime = 'musl' } = process.report.getReport().header;
  return `${process.arch}-${glibcVersionRuntime}`;
}

/** Resolves with the folder of the programs: in this checkout, because cargo in another one would replace them. */
async function compile(groups) {
  await requireRust();
  const what = groups.map(({ title }) => title).join(' and ');
  step(`Building ${what}, once for this version: about a minute`);
  const began = performance.now();
  const target = join(ROOT, 'rust/target');
  // Quiet: other steps print their progress meanwhile.
  const crates = groups.flatMap(({ programs }) => Object.values(programs)).flatMap((crate) => ['-p', crate]);
  const args = ['build', '--release', '--locked', '--quiet', '--target-dir', target, ...crates];
  const code = await run('cargo', args, { cwd: join(ROOT, 'rust') });
  if (code !== 0) fail(`Building ${what} has failed; cargo printed the reason above.`);
  for (const crate of groups.flatMap(({ linkedStatically = [] }) => linkedStatically))
    await link(crate, target);
  step(`Built ${what} (${Math.round((performance.now() - began) / 1000)} s)`);
  return join(target, 'release');
}

/**
 * Links a program again, with the library of C in it, and for one address: it has nothing to do but itself before it
 * begins. Some systems do not have that library: then it stays as it is.
 */
async function link(crate, target) {
  const args = ['rustc', '--release', '--locked', '--quiet', '--target-dir', target, '-p', crate];
  const flags = ['-C', 'target-feature=+crt-static', '-C', 'relocation-model=static'];
  const code = await run('cargo', [...args, '--', ...flags], {
    cwd: join(ROOT, 'rust'),
    stdio: 'ignore',
  });
  if (code !== 0) step(`${crate} loads the library of C: there is no static one here`);
}

/** Copies a program; one that runs from the same path keeps its old file. */
function place(from, to) {
  mkdirSync(dirname(to), { recursive: true });
  const temporary = `${to}.${process.pid}`;
  copyFileSync(from, temporary);
  // Other users run them, whatever the umask of who has built them.
  chmodSync(temporary, 0o755);
  renameSync(temporary, to);
}

/** Copies a program to the cache, which others need not have. */
function keep(from, to) {
  try {
    place(from, to);
  } catch (error) {
    step(`The native programs are not cached for other checkouts: ${error.message}`);
  }
}
