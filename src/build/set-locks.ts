/**
 * Which crates a set has: the Cargo.lock that cargo makes of a manifest. What was resolved is kept for a while, so that
 * handlers with the same dependencies get the same crates, and cargo needs no network for them.
 */
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { lockedPackages } from '../model/cargo-lock.js';
import { removeTree } from '../sandbox/remove-tree.js';
import { credentialEnvironment } from './crate-credentials.js';
import { downloadCrates } from './crate-downloads.js';
import { notInLock, withPackagesOf } from './lock-file.js';
import { cratesAskedFor, type DependencySpec, manifest } from './manifest.js';
import { forgetUnused } from './prepared-sets.js';
import type { SetBuilderOptions } from './set-build.js';
import { cargoHome } from './set-crates.js';
import { type FailedSet, failedSet, refusedSet } from './set-failure.js';

/** Without a lock of the author, newer crates are used after this time. */
const NEW_AFTER_MS = 24 * 3600_000;

/** How locks name crates.io, whatever replaces it. */
const CRATES_IO = 'https://github.com/rust-lang/crates.io-index';

export type ResolvedLock = { readonly ok: true; readonly lock: string } | FailedSet;

export class SetLocks {
  readonly #options: SetBuilderOptions;
  readonly #folder: string;

  /** @param folder of what was resolved */
  constructor(options: SetBuilderOptions, folder: string) {
    this.#options = options;
    this.#folder = folder;
  }

  /** What tells a request from all others: the manifest, the given lock, the compiler and the SDK. */
  keyOf(spec: DependencySpec): string {
    const { toolchain } = this.#options;
    const { text = '', isStrict = false } = spec.lock ?? {};
    const asked = [manifest(toolchain.sdk, spec), spec.local?.digest ?? '', text, isStrict];
    return createHash('sha256')
      .update(JSON.stringify([toolchain.fingerprint, ...asked]))
      .digest('hex')
      .slice(0, 24);
  }

  /** What was resolved before; undefined: nothing, or too long ago, if the author has no lock. */
  async known(spec: DependencySpec, newAfterMs = NEW_AFTER_MS): Promise<string | undefined> {
    if (spec.isFresh) return undefined;
    const file = this.#fileOf(spec);
    const status = await stat(file).catch(() => undefined);
    if (!status || (!spec.lock && Date.now() - status.mtimeMs > newAfterMs)) return undefined;
    const lock = await readFile(file, 'utf8').catch(() => undefined);
    if (lock === undefined || notAllowedIn(lock, this.#options.crateSources)) return undefined;
    // Kept for as long as it is used; without a lock of the author, its time says how old it is.
    if (spec.lock) await utimes(file, new Date(), new Date());
    return lock;
  }

  /** Resolves a manifest, and downloads its crates. */
  async resolve(spec: DependencySpec): Promise<ResolvedLock> {
    const { toolchain, limits } = this.#options;
    await mkdir(this.#folder, { recursive: true });
    const folder = await mkdtemp(join(this.#folder, 'resolving-'));
    try {
      // The SDK's own lock, so that crates of both get the versions it was tested with.
      const ofSdk = await readFile(join(toolchain.sdk, 'Cargo.lock'), 'utf8');
      const lock = spec.lock ? withPackagesOf(spec.lock.text, ofSdk) : ofSdk;
      const project = { manifest: manifest(toolchain.sdk, spec), lock, local: spec.local };
      const downloaded = await downloadCrates(folder, project, {
        ...this.#options,
        env: { ...this.#options.env, ...credentialEnvironment(await this.#options.credentials()) },
      });
      if (!downloaded.ok)
        return failedSet(downloaded.result, {
          ...{ step: 'download', limits, toolchain, projects: [folder] },
          cargoHome: cargoHome(this.#options.env),
        });
      const misfit = spec.lock?.isStrict && misfitOf(spec.lock.text, downloaded.lock, spec);
      if (misfit) return refusedSet(misfit);
      const stranger = notAllowedIn(downloaded.lock, this.#options.crateSources);
      if (stranger) return refusedSet(stranger);
      // Whoever comes with what was resolved gets the same, without asking cargo.
      const same = { ...spec, lock: { text: downloaded.lock, isStrict: false } };
      for (const known of [spec, same]) {
        const written = join(folder, 'resolved');
        await writeFile(written, downloaded.lock);
        await rename(written, this.#fileOf(known));
      }
      return downloaded;
    } finally {
      await removeTree(folder);
    }
  }

  /** Deletes what was resolved so long ago. */
  forget(unusedMs: number): Promise<void> {
    return forgetUnused(this.#folder, unusedMs);
  }

  #fileOf(spec: DependencySpec): string {
    return join(this.#folder, `${this.keyOf(spec)}.lock`);
  }
}

/** Crates of other places can have come by way of those that a handler names; undefined: none has. */
function notAllowedIn(lock: string, allowed: readonly string[]): string | undefined {
  for (const { name, source } of lockedPackages(lock)) {
    const [, address] = /^(?:git|sparse|registry)\+([^?#]+)/.exec(source ?? '') ?? [];
    if (address === undefined || address === CRATES_IO || allowed.includes(new URL(address).origin)) continue;
    return `The crate ${name} is of ${address}, which the operator does not allow (CARGO_SOURCES).`;
  }
  return undefined;
}

/** Why a lock is not one of this manifest; undefined: it is. */
function misfitOf(given: string, resolved: string, spec: DependencySpec): string | undefined {
  const missing = notInLock(given, resolved, cratesAskedFor(spec));
  if (!missing) return undefined;
  return (
    `The lock does not fit the dependencies: it has no ${missing.name} ${missing.version}, which these need. ` +
    'Run `cargo update --workspace` in the project, and deploy its Cargo.lock.'
  );
}
