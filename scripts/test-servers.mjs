/** The servers the tests talk to: installed when they are missing, if that can be done without asking. */
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fail, run, step } from './prepare.mjs';

/** What is built for the tests is kept outside the checkout, for the next clone. */
const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'edge-gateway', 'bin');

const S3_MODULE = 'github.com/versity/versitygw/cmd/versitygw';
const S3_VERSION = 'v1.8.0';

export async function ensureRedis() {
  if ((await run('redis-server', ['--version'], { stdio: 'ignore' }).catch(() => 1)) === 0) return;
  if (process.getuid?.() !== 0) fail('The tests need `redis-server`: apt-get install redis-server');
  step('Installing redis-server');
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const install = () =>
    run('apt-get', ['install', '-y', '-qq', '--no-install-recommends', 'redis-server'], { env });
  // The package lists of a fresh machine are empty or old.
  if ((await run('apt-get', ['update', '-qq'], { env })) !== 0 || (await install()) !== 0) {
    fail('redis-server could not be installed; apt-get said why above.');
  }
}

/**
 * The path of an S3 server (Versity S3 Gateway), built with Go the first time; empty when there is no Go, and the tests
 * that need it are skipped.
 */
export async function ensureS3Server() {
  const folder = join(CACHE, `versitygw-${S3_VERSION}`);
  const server = join(folder, 'versitygw');
  if (existsSync(server)) return server;
  if ((await run('go', ['version'], { stdio: 'ignore' }).catch(() => 1)) !== 0) {
    process.stdout.write('No Go on the PATH: the tests of the S3 artifact store are skipped.\n');
    return '';
  }
  step('Building an S3 server for the tests (once, about a minute)');
  await mkdir(folder, { recursive: true });
  const code = await run('go', ['install', `${S3_MODULE}@${S3_VERSION}`], {
    env: { ...process.env, GOBIN: folder },
  });
  if (code !== 0) fail('The S3 server could not be built; go said why above.');
  return server;
}
