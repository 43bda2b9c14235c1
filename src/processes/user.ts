/**
 * Entry of `npm run user`: makes an admin, or sets a lost password, for whoever has the machine. The new password is
 * read from standard input, so that it is in no list of processes; on a terminal one is made and printed once.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { loadConfig } from '../config.js';
import { toError } from '../errors.js';
import { FORMATS } from '../model/formats.js';
import { hashPassword } from '../secrets/passwords.js';
import { addToAudit } from '../store/audit.js';
import { type Database, openDatabase } from '../store/database.js';
import { createUser, updateUser, userByEmail } from '../store/users.js';
import { runningServerUrl } from '../up/embedded-postgres.js';

const USAGE = `Usage: npm run user -- create-admin EMAIL
       npm run user -- reset-password EMAIL
A password of 12 characters or more is read from standard input; on a terminal one is made, and printed once.`;
const SHORTEST = 12;
/** What the API takes with a sign-in. */
const LONGEST = 1_024;

const [command, email, ...rest] = process.argv.slice(2);
if ((command !== 'create-admin' && command !== 'reset-password') || email === undefined || rest.length > 0) {
  process.stderr.write(`${USAGE}\n`);
  process.exit(2);
}
try {
  await run(command, email.toLowerCase());
} catch (thrown) {
  process.stderr.write(`${toError(thrown).message}\n`);
  process.exitCode = 1;
}

async function run(what: 'create-admin' | 'reset-password', address: string): Promise<void> {
  const problem = FORMATS['email-address']?.(address);
  if (what === 'create-admin' && problem !== undefined) throw new Error(`EMAIL ${problem}.`);
  const config = loadConfig();
  const given = process.stdin.isTTY ? undefined : readFileSync(0, 'utf8').replace(/\r?\n$/, '');
  const password = given ?? randomBytes(15).toString('base64url');
  if (password.length < SHORTEST)
    throw new Error(`A password has ${SHORTEST} characters or more; standard input has ${password.length}.`);
  if (password.length > LONGEST) throw new Error(`A password has at most ${LONGEST} characters.`);
  const store = openDatabase(
    config.DATABASE_URL ?? (await runningServerUrl(config.DATA_DIR)),
    () => undefined,
    1,
  );
  try {
    const password_hash = await hashPassword(password);
    if (what === 'create-admin') {
      await createUser(store, { email: address, name: address, password_hash, role: 'admin', domains: [] });
    } else {
      const user = await userByEmail(store, address);
      if (!user) throw new Error(`There is no user ${address}.`);
      await updateUser(store, user.id, { password_hash });
    }
    await note(store, what, address);
  } finally {
    await store.close();
  }
  process.stdout.write(
    what === 'create-admin' ? `The admin ${address} is made.\n` : `The password is set.\n`,
  );
  if (password !== given) process.stdout.write(`Password: ${password}\n`);
}

async function note(store: Database, action: string, address: string): Promise<void> {
  const user = await userByEmail(store, address);
  await addToAudit(store, {
    ...{ actor: { kind: 'internal' }, address: 'this machine', request_id: `user-${process.pid}` },
    ...{ method: 'COMMAND', action, outcome: 'changed', status: 200, object_kind: 'user' },
    ...{ object_id: user?.id ?? null, before: null, after: { email: address } },
  });
}
