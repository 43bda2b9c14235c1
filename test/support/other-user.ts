/**
 * Programs of this checkout as another user, who may not be able to enter its folder: it can be below /root, or made
 * with a umask that keeps others out. For them, in a mount namespace of their own, a copy of what runs is at /mnt.
 * Needs root.
 */
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const SEEN_AT = '/mnt';
/** What runs. Its packages are in it, see `scripts/processes.mjs`. */
const PARTS = ['dist/src', 'dist/processes', 'dist/native', 'package.json'];

/** What a program is put behind. It replaces itself by the program, which keeps its process id. */
export function asOtherUser(user: number): string[] {
  const script = [
    `mount -t tmpfs -o mode=755 tmpfs ${SEEN_AT}`,
    'cd "$0"',
    `cp -r --parents ${PARTS.join(' ')} ${SEEN_AT}`,
    `chmod -R go+rX ${SEEN_AT}`,
    'cd /',
    `exec setpriv --reuid=${user} --regid=${user} --clear-groups "$@"`,
  ].join(' && ');
  return ['unshare', '--mount', 'sh', '-c', script, ROOT];
}

/** The path of a file of this checkout, for such a program. */
export function pathForOtherUser(url: URL): string {
  return join(SEEN_AT, relative(ROOT, fileURLToPath(url)));
}
