/** Locks and unlocks a folder when its parent says so, and answers whether it holds the lock. */
import { lockDataDir } from '../../src/up/lock.js';

const [, , folder = ''] = process.argv;
let unlock: (() => void) | undefined;
process.on('message', (question) => {
  if (question === 'lock') {
    try {
      unlock = lockDataDir(folder);
    } catch {
      unlock = undefined;
    }
  } else {
    unlock?.();
    unlock = undefined;
  }
  process.send?.(unlock !== undefined);
});
