/** Paths that programs would see because they are below a system folder, and must not. */
import { realpathSync } from 'node:fs';

/** Folders of programs and libraries that every program sees; on most systems all but /usr are links into it. */
const SYSTEM_FOLDERS = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];

/**
 * Selects the paths that would be visible because they are below a system folder, with symbolic links resolved and
 * without nested paths. Paths that do not exist or cannot be reached need not be hidden.
 */
export function hiddenPaths(secret: readonly string[]): string[] {
  const seen = secret
    .flatMap(realPath)
    .filter((path) => SYSTEM_FOLDERS.some((system) => path.startsWith(`${system}/`)));
  return [...new Set(seen)].filter((path) => !seen.some((outer) => path.startsWith(`${outer}/`)));
}

function realPath(path: string): string[] {
  try {
    return [realpathSync(path)];
  } catch {
    return [];
  }
}
