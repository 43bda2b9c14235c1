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
  readonly files: Readonly<Record<string, string>>;
}

export interface CrateRegistry {
  /** A CARGO_HOME in which this registry replaces crates.io. */
  readonly cargoHome: string;
  close(): Promise<void>;
}

const REAL_HOME = process.env['CARGO_HOME'] ?? join(homedir(), '.cargo');

export async function startCrateRegistry(crates: readonly TestCrate[]): Promise<CrateRegistry> {
  // Crates of the SDK are downloaded unless they exist.
  execFileSync('cargo', ['fetch', '--quiet', '--locked', '--manifest-path', 'rust/sdk/Cargo.toml']);
  const folder = await tempDir('registry');
  const packed = new Map(crates.map((crate) => [crate.name, pack(crate, folder)]));
  const server = createServer((request, response) => {
    const { port } = server.address() as AddressInfo;
    const body = answer(request.url ?? '', packed, port);
    response.writeHead(body === undefined ? 404 : 200).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { cargoHome: makeHome(folder, server), close: () => close(server, folder) };
}

interface Packed {
  readonly crate: TestCrate;
  readonly bytes: Buffer;
}

function answer(url: string, packed: ReadonlyMap<string, Packed>, port: number): string | Buffer | undefined {
  if (url === '/config.json') return JSON.stringify({ dl: `http://127.0.0.1:${port}/dl` });
  const [, name = '', version = ''] = /^\/dl\/([^/]+)\/([^/]+)\/download$/.exec(url) ?? [];
  if (name !== '')
    return packed.get(name)?.bytes ?? downloaded(join('cache', '*', `${name}-${version}.crate`));
  const own = packed.get(url.split('/').at(-1) ?? '');
  return own ? indexLine(own) : indexOf(url);
}

function indexLine({ crate, bytes }: Packed): string {
  const cksum = createHash('sha256').update(bytes).digest('hex');
  return `${JSON.stringify({ name: crate.name, vers: crate.version, deps: [], cksum, features: {}, yanked: false })}\n`;
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
  const { name, version, macro = false, files } = crate;
  const root = `${name}-${version}`;
  const manifest = [
    `[package]\nname = "${name}"\nversion = "${version}"\nedition = "2021"`,
    macro ? '[lib]\nproc-macro = true' : '',
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
  return { crate, bytes };
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
