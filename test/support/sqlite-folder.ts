/** Folders for files of sqlite services, which run as their owner where root has started the tests. */
import { execa } from 'execa';
import { HAS_UNTRUSTED_USERS, SQLITE_USER } from '../../src/util/untrusted-users.js';

/** Gives folders, and what is in them, to the user of such services. */
export async function giveToServices(...folders: readonly string[]): Promise<void> {
  if (HAS_UNTRUSTED_USERS && folders.length > 0)
    await execa('chown', ['-hR', `${SQLITE_USER}:${SQLITE_USER}`, ...folders]);
}
