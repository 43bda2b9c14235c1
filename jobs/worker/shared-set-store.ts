/** Sets of crates that the workers of an installation share: archives in the artifact store, by the keys of sets. */
import { mkdir, readdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type ArtifactStore, digestFile } from '../../src/artifacts/artifact-store.js';
import type { SharedSets } from '../../src/build/dependency-sets.js';
import type { ToolRun } from '../../src/build/run-tool.js';
import { runSystemTool } from '../../src/build/set-crates.js';
import { toError } from '../../src/errors.js';
import { removeTree } from '../../src/sandbox/remove-tree.js';
import { findArtifact, saveArtifact } from '../../src/store/artifacts.js';
import type { Store } from '../../src/store/database.js';
import type { Logger } from '../../src/util/log.js';

interface SharedSetOptions extends Pick<ToolRun, 'env' | 'limits'> {
  readonly store: Store;
  readonly artifacts: ArtifactStore;
  /** Fingerprint of the toolchain. */
  readonly toolchain: string;
  readonly log: Logger;
}

const ARCHIVE = 'set.tar.gz';

export class SharedSetStore implements SharedSets {
  readonly #options: SharedSetOptions;

  constructor(options: SharedSetOptions) {
    this.#options = options;
  }

  async fetch(key: string, folder: string): Promise<boolean> {
    const { store, artifacts, toolchain, log } = this.#options;
    let hasBegun = false;
    try {
      const known = await findArtifact(store, nameOf(key), toolchain);
      if (!known || !(await artifacts.has(known.digest))) return false;
      // So that it is kept for as long as workers need it.
      await saveArtifact(store, known);
      hasBegun = true;
      await removeTree(folder);
      await mkdir(folder);
      const archive = join(folder, ARCHIVE);
      await artifacts.fetch(known.digest, archive);
      if ((await digestFile(archive)) !== known.digest) throw new Error('it is not what was stored');
      await this.#tar(['--extract', '--no-same-owner', '--preserve-permissions'], archive, folder);
      await removeTree(archive);
      log.info({ set: key }, 'took a set of crates that another worker has built');
      return true;
    } catch (error) {
      log.warn({ err: toError(error), set: key }, 'a set of crates of another worker cannot be used');
      // What an earlier try has built is kept, unless it is gone anyway.
      if (hasBegun) await removeTree(folder);
      await mkdir(folder, { recursive: true });
      return false;
    }
  }

  async offer(key: string, folder: string): Promise<void> {
    const { store, artifacts, toolchain } = this.#options;
    const known = await findArtifact(store, nameOf(key), toolchain);
    if (known && (await artifacts.has(known.digest))) return;
    const archive = join(dirname(folder), `.${key}-${ARCHIVE}`);
    try {
      // Libraries compress to a quarter; more effort would cost more time than it saves.
      const how = ['--create', '--use-compress-program=gzip -1', '--mode=a+rX,u+w,ug-s'];
      await this.#tar(how, archive, folder, await readdir(folder));
      const digest = await digestFile(archive);
      const { size } = await stat(archive);
      await artifacts.put(digest, archive);
      await saveArtifact(store, { source_key: nameOf(key), toolchain, digest, size, diagnostics: [] });
    } finally {
      await removeTree(archive);
    }
  }

  async #tar(how: string[], archive: string, folder: string, names: string[] = []): Promise<void> {
    const args = [...how, `--file=${archive}`, `--directory=${folder}`, '--', ...names];
    const ended = await runSystemTool('tar', args, this.#options);
    if (ended) throw new Error(`tar was stopped by a limit: ${ended.outcome}`);
  }
}

/** The name among the sources of artifacts. */
function nameOf(key: string): string {
  return `crates-${key}`;
}
