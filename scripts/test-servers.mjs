/**
 * The real servers the tests talk to: installed when they are missing, if that can be done without asking, and listed
 * with their versions. What is built or downloaded goes to a cache folder outside the checkout.
 */
import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fail, run, step } from './prepare.mjs';

/** Where servers are kept that are not packages of the system. Tests find it the same way: `test/support/server-cache.ts`. */
export const SERVER_CACHE = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'edge-gateway',
  'test-servers',
);

/** Servers from Debian packages. `version` is how to ask; a program that answers counts as installed. */
const PACKAGED = [
  { name: 'Redis', package: 'redis-server', version: ['redis-server', '--version'] },
  { name: 'MariaDB', package: 'mariadb-server', version: ['mariadbd', '--version'] },
  { name: 'memcached', package: 'memcached', version: ['memcached', '--version'] },
  { name: 'vsftpd (FTP, FTPS)', package: 'vsftpd', version: ['vsftpd', '-v'] },
  { name: 'OpenSSH (SFTP)', package: 'openssh-server', version: ['ssh', '-V'] },
];

/** Installs what is missing, and prints what there is. */
export async function ensureTestServers() {
  await installPackages(PACKAGED.filter((server) => versionOf(server) === undefined));
  mkdirSync(SERVER_CACHE, { recursive: true });
  step('Real servers the tests talk to');
  for (const server of PACKAGED) process.stdout.write(`  ${server.name}: ${versionOf(server)}\n`);
}

async function installPackages(missing) {
  if (missing.length === 0) return;
  const names = missing.map((server) => server.package);
  if (process.getuid?.() !== 0)
    fail(`The tests need servers that are missing: apt-get install ${names.join(' ')}`);
  step(`Installing ${names.join(', ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // The package lists of a fresh machine are empty or old.
  const installed =
    (await run('apt-get', ['update', '-qq'], { env })) === 0 &&
    (await run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...names], { env })) === 0;
  if (!installed) fail(`${names.join(', ')} could not be installed; apt-get said why above.`);
}

/** The first line of what a server says of its version; undefined when it is not there. */
function versionOf({ version: [program, ...args] }) {
  // Programs of system services are not on the PATH of every user.
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };
  const { error, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return error ? undefined : (stdout.trim() || stderr.trim()).split('\n')[0];
}
