/**
 * Executables that earlier tests, or runs, have compiled: a test that is not about compiling need not wait for it
 * again. One is known by toolchain (which has the SDK and all flags) and source, as in the product, and by the code
 * that builds it.
 */
import { createHash, randomUUID } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type pg from 'pg';
import type { ArtifactStore } from '../../src/artifacts/artifact-store.js';
import { isErrno } from '../../src/util/errno.js';
import { withClient } from './postgres.js';

/** Those that no run has used for so long are removed. */
const KEPT_MS = 7 * 24 * 3600 * 1000;

interface Source {
  readonly source_key: string;
  readonly toolchain: string;
}

interface Known {
  readonly digest: string;
  readonly size: number;
  readonly diagnostics: unknown;
}

export class KnownArtifacts {
  readonly #root: string;
  readonly #databaseUrl: string;
  readonly #artifacts: ArtifactStore;

  /** @param artifacts the store of the stack whose database this is */
  constructor(root: string, databaseUrl: string, artifacts: ArtifactStore) {
    this.#root = root;
    this.#databaseUrl = databaseUrl;
    this.#artifacts = artifacts;
  }

  /** Compiles an endpoint, with what is known of its source. */
  async compile(endpoint: string, compile: () => Promise<unknown>): Promise<void> {
    const source = await withClient(this.#databaseUrl, (client) => sourceOf(client, endpoint));
    const isKnown = source !== undefined && (await this.#offer(source));
    await compile();
    if (source !== undefined && !isKnown) await this.#keep(source);
  }

  /** @returns whether it is known */
  async #offer({ source_key, toolchain }: Source): Promise<boolean> {
    const folder = this.#folderOf(toolchain);
    try {
      const record = await readFile(join(folder, `${source_key}.json`), 'utf8');
      const { digest, size, diagnostics } = JSON.parse(record) as Known;
      await this.#artifacts.put(digest, join(folder, digest));
      await withClient(this.#databaseUrl, (client) =>
        client.query(
          `INSERT INTO artifacts (source_key, toolchain, digest, size, diagnostics) VALUES ($1, $2, $3, $4, $5)
           ON CONFLICT DO NOTHING`,
          [source_key, toolchain, digest, size, JSON.stringify(diagnostics)],
        ),
      );
      await markUsed(folder);
      return true;
    } catch (error) {
      // Not known, or just removed by another run.
      if (isErrno(error, 'ENOENT')) return false;
      throw error;
    }
  }

  async #keep({ source_key, toolchain }: Source): Promise<void> {
    const { rows } = await withClient(this.#databaseUrl, (client) =>
      client.query<Known>(
        'SELECT digest, size, diagnostics FROM artifacts WHERE source_key = $1 AND toolchain = $2',
        [source_key, toolchain],
      ),
    );
    const [known] = rows;
    if (known === undefined) return;
    const folder = this.#folderOf(toolchain);
    await mkdir(folder, { recursive: true });
    await markUsed(folder);
    // Other tests may do this at the same time: each file is there whole, or not at all.
    const temporary = join(folder, randomUUID());
    try {
      await this.#artifacts.fetch(known.digest, temporary);
      await rename(temporary, join(folder, known.digest));
      await writeFile(temporary, JSON.stringify(known));
      await rename(temporary, join(folder, `${source_key}.json`));
    } finally {
      await rm(temporary, { force: true });
    }
    await this.#removeUnused();
  }

  #folderOf(toolchain: string): string {
    return join(this.#root, `${toolchain}-${buildCode()}`);
  }

  async #removeUnused(): Promise<void> {
    for (const name of await readdir(this.#root)) {
      const folder = join(this.#root, name);
      const used = await stat(folder).then(
        ({ mtimeMs }) => mtimeMs,
        () => Date.now(), // another run has removed it
      );
      if (Date.now() - used > KEPT_MS) await rm(folder, { recursive: true, force: true });
    }
  }
}

async function markUsed(folder: string): Promise<void> {
  const now = new Date();
  await utimes(folder, now, now);
}

/** Undefined when it has no source, or no worker, or workers with different toolchains. */
async function sourceOf(client: pg.Client, endpoint: string): Promise<Source | undefined> {
  const { rows } = await client.query<Source>(
    `SELECT DISTINCT source_key, nodes.info->>'toolchain' AS toolchain
       FROM endpoints, nodes WHERE endpoints.id = $1 AND nodes.kind = 'worker' AND source_key IS NOT NULL`,
    [endpoint],
  );
  return rows.length === 1 ? rows[0] : undefined;
}

let code: string | undefined;

/** A digest of the code that builds handlers. */
function buildCode(): string {
  code ??= digestOf(fileURLToPath(new URL('../../src/build', import.meta.url)));
  return code;
}

function digestOf(folder: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).sort())
    if (name.endsWith('.js')) hash.update(`${name}\0`).update(readFileSync(join(folder, name)));
  return hash.digest('hex').slice(0, 16);
}
