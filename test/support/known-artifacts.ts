/**
 * Executables that earlier tests, or runs, have compiled: a test that is not about compiling need not wait for it
 * again. As in the product, one is known by toolchain (which has the SDK and all flags) and source.
 */
import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type pg from 'pg';
import type { ArtifactStore } from '../../src/artifacts/artifact-store.js';
import { withClient } from './postgres.js';

/** Those of toolchains that no run has used for so long are removed. */
const KEPT_MS = 7 * 24 * 3600 * 1000;

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
    const source = await withClient(this.#databaseUrl, (client) => this.#sourceOf(client, endpoint));
    if (source === undefined) {
      await compile();
      return;
    }
    const isKnown = existsSync(this.#recordOf(source));
    if (isKnown) await this.#offer(source);
    await compile();
    if (!isKnown) await this.#keep(source);
  }

  /** Undefined when it has no source, or no worker, or workers with different toolchains. */
  async #sourceOf(client: pg.Client, endpoint: string): Promise<Source | undefined> {
    const { rows } = await client.query<Source>(
      `SELECT DISTINCT source_key, nodes.info->>'toolchain' AS toolchain
         FROM endpoints, nodes WHERE endpoints.id = $1 AND nodes.kind = 'worker' AND source_key IS NOT NULL`,
      [endpoint],
    );
    return rows.length === 1 ? rows[0] : undefined;
  }

  async #offer({ source_key, toolchain }: Source): Promise<void> {
    const record = await readFile(this.#recordOf({ source_key, toolchain }), 'utf8');
    const { digest, size, diagnostics } = JSON.parse(record) as Known;
    const folder = join(this.#root, toolchain);
    await this.#artifacts.put(digest, join(folder, digest));
    await withClient(this.#databaseUrl, (client) =>
      client.query(
        `INSERT INTO artifacts (source_key, toolchain, digest, size, diagnostics) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT DO NOTHING`,
        [source_key, toolchain, digest, size, JSON.stringify(diagnostics)],
      ),
    );
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
    const folder = await this.#folderOf(toolchain);
    // Other tests may do this at the same time: each file is there whole, or not at all.
    const temporary = join(folder, randomUUID());
    await this.#artifacts.fetch(known.digest, temporary);
    await rename(temporary, join(folder, known.digest));
    await writeFile(temporary, JSON.stringify(known));
    await rename(temporary, this.#recordOf({ source_key, toolchain }));
  }

  /** The folder of a toolchain; makes it, and then removes those that are no longer used. */
  async #folderOf(toolchain: string): Promise<string> {
    const folder = join(this.#root, toolchain);
    await mkdir(folder, { recursive: true });
    const now = new Date();
    await utimes(folder, now, now);
    for (const name of await readdir(this.#root)) {
      const { mtimeMs } = await stat(join(this.#root, name)).catch(() => ({ mtimeMs: Date.now() }));
      if (Date.now() - mtimeMs > KEPT_MS) await rm(join(this.#root, name), { recursive: true, force: true });
    }
    return folder;
  }

  #recordOf({ source_key, toolchain }: Source): string {
    return join(this.#root, toolchain, `${source_key}.json`);
  }
}

interface Source {
  readonly source_key: string;
  readonly toolchain: string;
}
