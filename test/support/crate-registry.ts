/**
 * A registry of crates for cargo, served by the test: hostile crates, and beside them those that cargo has downloaded
 * to this machine before, so that the SDK can be built with it.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TempDir, tempDir } from './temp.js';

/** A crate of the test: its files but for Cargo.toml. */
export interface TestCrate {
  readonly name: string;
  readonly version: string;
  /** Whether it is a procedural macro. */
  readonly macro?: boolean;
  /** Names of crates of the same registry, any version of them. */
  readonly dependencies?: readonly string[];
  readonly features?: readonly string[];
  readonly files: Readonly<Record<string, string>>;
}

export interface CrateRegistry {
  /** A CARGO_HOME in which this registry replaces crates.io. */
  readonly cargoHome: string;
  /** Scheme, host and port. */
  readonly origin: string;
  /** Adds a crate, or another version of one. */
  publish(crate: TestCrate): void;
  /** A version that is yanked is found by locks only. */
  yank(name: string, version: string): void;
  close(): Promise<void>;
}

const REAL_HOME = process.env['CARGO_HOME'] ?? join(homedir(), '.cargo');

/**
 * @param hasSdk whether it has the crates of the SDK, too
 * @param token that it wants, if any
 */
export async function startCrateRegistry(
  crates: readonly TestCrate[],
  hasSdk = true,
  token?: string,
): Promise<CrateRegistry> {
  // Crates of the SDK are downloaded unless they exist.
  if (hasSdk)
    execFileSync('cargo', ['fetch', '--quiet', '--locked', '--manifest-path', 'rust/sdk/Cargo.toml']);
  const folder = await tempDir('registry');
  const packed: Packed[] = crates.map((crate) => pack(crate, folder));
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    if (request.headers.authorization !== token) {
      response.writeHead(401).end();
      return;
    }
    const body = answer(request.url ?? '', { packed, port, needsToken: token !== undefined });
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    cargoHome: makeHome(folder, server),
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    publish: (crate) => packed.push(pack(crate, folder)),
    yank: (name, version) => {
      const found = packed.find(({ crate }) => crate.name === name && crate.version === version);
      if (!found) throw new Error(`there is no ${name} ${version}`);
      found.isYanked = true;
    },
    close: () => close(server, folder),
  };
}

interface Packed {
  readonly crate: TestCrate;
  readonly bytes: Buffer;
  isYanked: boolean;
}

interface Served {
  readonly packed: readonly Packed[];
  readonly port: number;
  readonly needsToken: boolean;
}

function answer(url: string, { packed, port, needsToken }: Served): string | Buffer | undefined {
  if (url === '/config.json')
    return JSON.stringify({
      dl: `http://127.0.0.1:${port}/dl`,
      ...(needsToken && { 'auth-required': true }),
    });
  const [, name = '', version = ''] = /^\/dl\/([^/]+)\/([^/]+)\/download$/.exec(url) ?? [];
  if (name !== '')
    return (
      packed.find(({ crate }) => crate.name === name && crate.version === version)?.bytes ??
      downloaded(join('cache', '*', `${name}-${version}.crate`))
    );
  const own = packed.filter(({ crate }) => crate.name === url.split('/').at(-1));
  return own.length > 0 ? own.map(indexLine).join('') : indexOf(url);
}

/** https://doc.rust-lang.org/cargo/reference/registry-index.html */
function indexLine({ crate, bytes, isYanked }: Packed): string {
  const { name, version, dependencies = [], features = [] } = crate;
  const kind = {
    req: '*',
    features: [],
    optional: false,
    default_features: true,
    target: null,
    kind: 'normal',
  };
  const line = {
    ...{ name, vers: version, yanked: isYanked },
    deps: dependencies.map((dependency) => ({ name: dependency, ...kind })),
    cksum: createHash('sha256').update(bytes).digest('hex'),
    features: Object.fromEntries(features.map((feature) => [feature, []])),
  };
  return `${JSON.stringify(line)}\n`;
}

/** Cargo keeps what an index says of each version between zero bytes. */
function indexOf(path: string): string | undefined {
  const kept = downloaded(join('index', '*', '.cache', path));
  const lines = kept
    ?.toString('utf8')
    .split('\0')
    .filter((part) => part.startsWith('{'));
  return lines?.map((line) => `${line}\n`).join('');
}

/**
 * A file below cargo's folder of registries.
 * @param path `*` matches any of them
 */
function downloaded(path: string): Buffer | undefined {
  const [kind = '', , ...rest] = path.split('/');
  for (const registry of readdirSync(join(REAL_HOME, 'registry', kind))) {
    try {
      return readFileSync(join(REAL_HOME, 'registry', kind, registry, ...rest));
    } catch {
      // It may be in another registry.
    }
  }
  return undefined;
}

function pack(crate: TestCrate, folder: TempDir): Packed {
  const { name, version, macro = false, dependencies = [], features = [], files } = crate;
  const root = `${name}-${version}`;
  const manifest = [
    `[package]\nname = "${name}"\nversion = "${version}"\nedition = "2021"`,
    macro ? '[lib]\nproc-macro = true' : '',
    `[dependencies]\n${dependencies.map((dependency) => `${dependency} = "*"`).join('\n')}`,
    `[features]\n${features.map((feature) => `${feature} = []`).join('\n')}`,
  ];
  for (const [path, text] of Object.entries({
    'src/lib.rs': '',
    ...files,
    'Cargo.toml': manifest.join('\n'),
  })) {
    const file = join(folder.path, root, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  const bytes = execFileSync('tar', ['-C', folder.path, '-czf', '-', root], { maxBuffer: 16 * 1024 * 1024 });
  return { crate, bytes, isYanked: false };
}

function makeHome(folder: TempDir, server: Server): string {
  const home = join(folder.path, 'cargo-home');
  mkdirSync(home);
  const { port } = server.address() as AddressInfo;
  writeFileSync(
    join(home, 'config.toml'),
    `[source.crates-io]\nreplace-with = "test"\n[source.test]\nregistry = "sparse+http://127.0.0.1:${port}/"\n`,
  );
  return home;
}

async function close(server: Server, folder: TempDir): Promise<void> {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await folder.remove();
}
