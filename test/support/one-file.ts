/** Sources of one file: most tests have no other. */
import type { Dependencies } from '../../src/model/crates.js';
import { sourceKey } from '../../src/model/source-key.js';

/** What such a source has beside its code. */
export const ONE_FILE = { entry: null, files: null } as const;

/** The key of such a source. */
export function keyOf(code: string | null, dependencies: Dependencies | null): string {
  return sourceKey({ code, dependencies, ...ONE_FILE });
}
