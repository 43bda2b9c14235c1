/** The web UI as it was built last. */
import { createHash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import sirv from 'sirv';
import { isErrno } from '../../util/errno.js';

/** What `scripts/ui.mjs` makes. */
const BUILT = fileURLToPath(new URL('../../../../ui/dist', import.meta.url));
/** Files have a hash in their names. */
const ASSET_AGE_SECONDS = 31_536_000;

export interface BuiltUi {
  /** Another one for other content: an open page knows by it that it is of an older build. */
  readonly id: string;
  /** The page, with places for the nonce and the id. */
  readonly page: string;
  readonly serveAsset: ReturnType<typeof sirv>;
}

let builtAt = 0;
let built: BuiltUi | undefined;

/** Undefined before it is built for the first time. */
export async function newestUi(): Promise<BuiltUi | undefined> {
  const file = join(BUILT, 'index.html');
  try {
    const { mtimeMs } = await stat(file);
    if (mtimeMs !== builtAt) {
      const page = await readFile(file, 'utf8');
      // The names of its files have their hashes.
      const id = createHash('sha256').update(page).digest('hex').slice(0, 16);
      // It looks for the files once.
      const serveAsset = sirv(join(BUILT, 'assets'), {
        ...{ immutable: true, maxAge: ASSET_AGE_SECONDS, brotli: true, gzip: true },
      });
      built = { id, page, serveAsset };
      builtAt = mtimeMs;
    }
  } catch (thrown) {
    if (!isErrno(thrown, 'ENOENT')) throw thrown;
  }
  return built;
}
