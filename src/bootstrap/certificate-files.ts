/** Files of certificates that processes of services read, which are other users where root has started the product. */
import { constants } from 'node:fs';
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { CERTIFICATE_VARIABLES, certificatePaths, isolatedEnvironment } from '../config.js';
import { toError } from '../errors.js';
import type { Log } from '../util/log.js';
import { HAS_UNTRUSTED_USERS } from '../util/untrusted-users.js';
import { isOpenToAll } from './reachable-folder.js';

/** Logs which of them a process of a service cannot read: it trusts no authority that is there. */
export async function warnOfClosedCertificates(
  log: Log,
  environment: Readonly<Record<string, string>> = isolatedEnvironment(),
): Promise<void> {
  if (!HAS_UNTRUSTED_USERS) return;
  for (const setting of CERTIFICATE_VARIABLES)
    for (const path of certificatePaths(setting, environment[setting] ?? '')) {
      const problem = await problemOf(path).catch((error: unknown) => toError(error).message);
      if (problem !== undefined)
        log.warn({ path, problem }, `processes of services cannot read the certificates of ${setting}`);
    }
}

async function problemOf(path: string): Promise<string | undefined> {
  const isReadable = ((await stat(path)).mode & constants.S_IROTH) !== 0;
  if (isReadable && (await isOpenToAll(dirname(path)))) return undefined;
  return 'it has to be readable for all users, in a folder that all can enter';
}
