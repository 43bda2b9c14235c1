/** Sources of one file: most tests have no other. */
import type { Dependencies } from '../../src/model/crates.js';
import { ONE_FILE } from '../../src/model/source-files.js';
import { sourceKey } from '../../src/model/source-key.js';

/** The key of such a source. */
export function keyOf(code: string | null, dependencies: Dependencies | null): string {
  return sourceKey({ code, dependencies, ...ONE_FILE });
}
