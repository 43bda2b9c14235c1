/** The servers the tests talk to: installed when they are missing, if that can be done without asking. */
import { fail, run, step } from './prepare.mjs';

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
