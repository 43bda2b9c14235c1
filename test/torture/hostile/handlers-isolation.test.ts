/** What handlers can see and reach of their machine: next to nothing. */
import { readFileSync } from 'node:fs';
import { type FileHandle, open, readdir, readFile, readlink } from 'node:fs/promises';
import { get } from 'node:http';
import { createServer, type Server } from 'node:net';
import { basename, join } from 'node:path';
import { expect } from 'chai';
import { actorHostSocket, runDirectory } from '../../../src/bootstrap/run-directory.js';
import { HAS_UNTRUSTED_USERS } from '../../../src/util/untrusted-users.js';
import type { TestBackend } from '../../support/backend.js';
import { startRedisBackend } from '../../support/backends/redis.js';
import { eventually } from '../../support/eventually.js';
import {
  type Attacker,
  type Neighbourhood,
  named,
  startNeighbourhood,
  USERS,
} from '../../support/hostile/neighbourhood.js';
import { ATTACKS } from '../../support/hostile/sdk-attacks.js';
import { processesWith } from '../../support/process-state.js';
import { type TempDir, tempDir } from '../../support/temp.js';

const SECRET = 'a secret that only processes of the product know';
const LIMITS = { memory_mb: 128, timeout_ms: 10_000 };
const ABSTRACT = `edge-gateway-test-${process.pid}`;

for (const user of USERS)
  describe(`what handlers can see and reach${named(user)}`, function () {
    this.timeout(90_000);
    /** Whether each handler has a user of its own. */
    const hasUsers = HAS_UNTRUSTED_USERS && user === undefined;
    let neighbourhood: Neighbourhood;
    let redis: TestBackend<'redis'>;
    let abstract: Server;
    let runDir: string;
    let folder: TempDir;
    let leftOpen: FileHandle;
    before(async () => {
      folder = await tempDir('left-open');
      leftOpen = await open(join(folder.path, 'file'), 'w+');
      redis = await startRedisBackend();
      abstract = createServer().listen(`\0${ABSTRACT}`);
      neighbourhood = await startNeighbourhood({
        env: { SECRET_KEY: SECRET },
        processes: ['web', 'worker', 'actor-host'],
        inheritedFile: leftOpen.fd,
        user,
      });
      ({ runDir } = neighbourhood.stack);
    });
    after(async () => {
      await neighbourhood.close();
      abstract.close();
      await redis.remove();
      await leftOpen.close();
      await folder.remove();
    });

    const attack = (run: (attacker: Attacker) => Promise<void>) => neighbourhood.attack(ATTACKS, LIMITS, run);
    const answerTo = async (attacker: Attacker, action: string, places?: readonly string[]) => {
      const { status, text } = await attacker.do(action, places && { body: places.join('\n') });
      expect(status, text).to.equal(200);
      return text;
    };
    const those = async (attacker: Attacker, action: string, places: readonly string[]) =>
      JSON.parse(await answerTo(attacker, action, places)) as string[];

    /** Files of the product, and of the machine, that exist. */
    async function files(): Promise<string[]> {
      const { gatewayDataDir: dataDir, processes } = neighbourhood.stack;
      const executables = await readdir(join(dataDir, 'handlers'));
      expect(executables).not.to.deep.equal([]);
      const pids = [...processes.values()].map(({ pid }) => pid);
      return [
        dataDir,
        join(dataDir, 'artifacts'),
        ...executables.map((name) => join(dataDir, 'handlers', name)),
        runDir,
        ...(await readdir(runDir)).map((name) => join(runDir, name)),
        process.cwd(),
        process.execPath,
        '/etc/passwd',
        '/etc/hostname',
        '/root',
        '/home',
        '/var',
        '/sys',
        '/proc/sysvipc',
        ...pids.flatMap((pid) => [`/proc/${pid}/environ`, `/proc/${pid}/mem`, `/proc/${pid}/cmdline`]),
      ].filter((place) => !place.startsWith('/usr/') && place !== '/proc/sysvipc');
    }

    /** Where the gateway connects to its handlers. */
    async function handlerSockets(): Promise<string[]> {
      const folders = processesWith('EDGE_SOCKET=').map((pid) => `/proc/${pid}/root/tmp`);
      const found = await Promise.all(
        folders.map(async (folder) => (await readdir(folder)).map((name) => join(folder, name))),
      );
      return found.flat().filter((path) => path.endsWith('.sock'));
    }

    /** Where something listens that a handler has no business with. */
    async function listeners(own: number | null): Promise<{ tcp: string[]; unix: string[] }> {
      const { apiUrl, gatewayUrl, databaseUrl } = neighbourhood.stack;
      const { host, port } = redis.config as { host: string; port: number };
      const database = new URL(databaseUrl);
      const address = (url: URL) => `127.0.0.1:${url.port}`;
      const sockets = await handlerSockets();
      // Perhaps those of another gateway on this machine, too.
      expect(sockets).to.have.length.above(1);
      return {
        tcp: [
          address(new URL(apiUrl)),
          address(new URL(gatewayUrl)),
          address(database),
          `${host === 'localhost' ? '127.0.0.1' : host}:${port}`,
        ],
        unix: [
          actorHostSocket(runDir),
          join(runDir, 'services', 'services.sock'),
          ...sockets,
          ...sockets
            .filter((path) => !path.startsWith(`/proc/${own}/`))
            .map((path) => join('/tmp', basename(path))),
          `abstract:${ABSTRACT}`,
        ],
      };
    }

    it('reads no file but its own', () =>
      attack(async (attacker) => {
        expect(await those(attacker, 'read', [...(await files()), '/handler', '/usr'])).to.deep.equal([
          '/handler',
          '/usr',
        ]);
        expect(JSON.parse(await answerTo(attacker, 'list&at=/run'))).to.have.members(['/run/services']);
        // It knows the names of the sockets it is told. Not as root, it runs as the user who owns the folder.
        expect(JSON.parse(await answerTo(attacker, 'list&at=/run/services'))).to.deep.equal(
          hasUsers ? [] : ['/run/services/services.sock'],
        );
      }));

    it('inherits no file that was open when the gateway was started', () =>
      attack(async (attacker) => {
        const { pid } = await attacker.view();
        const ours = [...neighbourhood.stack.processes.values()].map((process) => process.pid);
        for (const owner of [...ours, pid]) {
          const names = await readdir(`/proc/${owner}/fd`);
          const files = await Promise.all(
            names.map((name) => readlink(`/proc/${owner}/fd/${name}`).catch(String)),
          );
          expect(files, `of process ${owner}`).not.to.include(join(folder.path, 'file'));
        }
      }));

    it('writes to nothing but its /tmp', () =>
      attack(async (attacker) => {
        const places = ['/handler', '/usr', '/usr/bin', '/etc', '/', '/dev', '/run', '/run/services'];
        expect(await those(attacker, 'write', [...places, ...(await files()), '/tmp'])).to.deep.equal([
          '/tmp',
        ]);
        expect(
          await those(attacker, 'write', ['/run/services/services.sock', '/proc/sys/kernel/hostname']),
        ).to.deep.equal([]);
      }));

    it('cannot write to a disk of this machine, not even through an open file', () =>
      attack(async (attacker) => {
        const { pid } = await attacker.view();
        const mounts = (await readFile(`/proc/${pid}/mountinfo`, 'utf8')).trim().split('\n');
        // proc(5): id, parent, device, root, mount point, options, ..., "-", type of the file system, ...
        const writable = mounts
          .map((line) => line.split(' '))
          .filter((fields) => fields[5]?.split(',').includes('rw'))
          .map((fields) => ({ at: fields[4] ?? '', type: fields[fields.indexOf('-') + 1] ?? '' }))
          // Devices, and no folders.
          .filter(({ at }) => !/^\/dev\/./.test(at));
        expect(writable).to.deep.equal([{ at: '/tmp', type: 'tmpfs' }]);
      }));

    it('sees no process, environment or memory of others, and cannot signal or trace any', () =>
      attack(async (attacker) => {
        expect(JSON.parse(await answerTo(attacker, 'processes'))).to.deep.equal([]);
        expect(JSON.parse(await answerTo(attacker, 'environment'))).to.have.members([
          'EDGE_SOCKET',
          'EDGE_CONTROL_FD',
          'EDGE_LOG_FD',
          'EDGE_MAX_THREADS',
          'EDGE_ENDPOINT_ID',
          'EDGE_SERVICES_SOCKET',
          'EDGE_SERVICES_TOKEN',
          'EDGE_SERVICES_TIMEOUT_MS',
          'MALLOC_ARENA_MAX',
        ]);
        await answerTo(attacker, 'kill-all');
        expect(await answerTo(attacker, 'kill-parent')).to.equal('0');
        expect(await answerTo(attacker, 'ptrace')).to.equal('0');
        expect(await answerTo(attacker, 'root')).to.equal('false');
        expect(await answerTo(attacker, 'mount')).to.match(/not permitted|not implemented/);
      }));

    it('connects to nothing but the actor host', () =>
      attack(async (attacker) => {
        const { tcp, unix } = await listeners((await attacker.view()).pid);
        const own = '/run/services/services.sock';
        expect(await those(attacker, 'connect', [...tcp, ...unix, own])).to.deep.equal([own]);
        // As a handler's author gets to see it.
        expect(await answerTo(attacker, 'why-not&at=192.0.2.1:80')).to.match(/Network is unreachable/);
        expect(await answerTo(attacker, 'why-not&at=db.example:80')).to.match(/failed to lookup address/);
      }));

    it('finds the socket of a restarted actor host', () =>
      attack(async (attacker) => {
        await neighbourhood.stack.processes.get('actor-host')?.end();
        const own = '/run/services/services.sock';
        expect(await those(attacker, 'connect', [own])).to.deep.equal([]);
        await neighbourhood.stack.start('actor-host');
        expect(await those(attacker, 'connect', [own])).to.deep.equal([own]);
      }));
  });

/** What a request without a token gets there. */
function statusOf(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ socketPath, path: '/' }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).once('error', reject);
  });
}

describe('what handlers can reach with HANDLER_NETWORK=host', function () {
  this.timeout(90_000);
  let neighbourhood: Neighbourhood;
  before(async () => {
    neighbourhood = await startNeighbourhood({ env: { HANDLER_NETWORK: 'host' } });
  });
  after(() => neighbourhood.close());

  it('is the network of the machine, without more files or processes', () =>
    neighbourhood.attack(ATTACKS, LIMITS, async (attacker) => {
      const { apiUrl, databaseUrl, dataDir } = neighbourhood.stack;
      const tcp = [apiUrl, databaseUrl].map((url) => `127.0.0.1:${new URL(url).port}`);
      const body = [...tcp, join(await runDirectory(dataDir), 'services', 'services.sock')].join('\n');
      expect(JSON.parse((await attacker.do('connect', { body })).text)).to.deep.equal(tcp);
      expect((await attacker.do('why-not&at=localhost:1')).text).to.match(/refused/);
      const files = [dataDir, '/etc/passwd', '/etc/ssl/private', '/etc/resolv.conf', '/etc/ssl/certs'];
      const { text } = await attacker.do('read', { body: files.join('\n') });
      expect(JSON.parse(text)).to.deep.equal(['/etc/resolv.conf', '/etc/ssl/certs']);
      expect(JSON.parse((await attacker.do('processes')).text)).to.deep.equal([]);
    }));
});

for (const user of USERS)
  describe(`what handlers can see and reach without namespaces${named(user)}`, function () {
    this.timeout(90_000);
    const ABSTRACT_NAME = `${ABSTRACT}-landlock`;
    const hasUsers = HAS_UNTRUSTED_USERS && user === undefined;
    let neighbourhood: Neighbourhood;
    let abstract: Server;
    let runDir: string;
    before(async () => {
      abstract = createServer().listen(`\0${ABSTRACT_NAME}`);
      neighbourhood = await startNeighbourhood({
        env: { SECRET_KEY: SECRET },
        processes: ['web', 'worker', 'actor-host'],
        sandbox: 'landlock',
        user,
      });
      ({ runDir } = neighbourhood.stack);
    });
    after(async () => {
      await neighbourhood.close();
      abstract.close();
    });

    const attack = (run: (attacker: Attacker) => Promise<void>) => neighbourhood.attack(ATTACKS, LIMITS, run);
    const those = async (attacker: Attacker, action: string, places: readonly string[]) => {
      const { status, text } = await attacker.do(action, { body: places.join('\n') });
      expect(status, text).to.equal(200);
      return JSON.parse(text) as string[];
    };
    /** The folder of its socket. */
    const ownFolder = async (attacker: Attacker) => {
      const { pid } = await attacker.view();
      const environment = await readFile(`/proc/${pid}/environ`, 'latin1');
      return /(?:^|\0)TMPDIR=([^\0]+)/.exec(environment)?.[1] ?? expect.fail('no TMPDIR');
    };
    const ours = () => [process, ...neighbourhood.stack.processes.values()].map(({ pid }) => pid);

    it('reads no file but its own, and of no other process', () =>
      attack(async (attacker) => {
        const { gatewayDataDir: dataDir } = neighbourhood.stack;
        const own = await ownFolder(attacker);
        const inRun = (await readdir(runDir)).map((name) => join(runDir, name));
        expect(inRun.filter((path) => basename(path).startsWith('handler-'))).to.have.length.above(1);
        const executables = (await readdir(join(dataDir, 'handlers'))).map((name) =>
          join(dataDir, 'handlers', name),
        );
        expect(executables).not.to.deep.equal([]);
        const places = [
          ...[
            dataDir,
            join(dataDir, 'artifacts'),
            join(dataDir, 'secret.key'),
            ...executables,
            runDir,
            ...inRun,
          ],
          ...[
            process.cwd(),
            '/etc/passwd',
            '/etc/hostname',
            '/etc',
            '/',
            '/root',
            '/home',
            '/var',
            '/sys',
            '/tmp',
          ],
          ...[
            '/proc',
            '/proc/1/environ',
            '/proc/self/environ',
            '/proc/cpuinfo',
            '/dev',
            '/dev/zero',
            '/dev/shm',
          ],
          ...ours().flatMap((pid) =>
            ['environ', 'mem', 'cmdline', 'maps'].map((name) => `/proc/${pid}/${name}`),
          ),
        ].filter((place) => !place.startsWith('/usr/'));
        // Not as root: its executable, and the folder of the sockets of services.
        const given = hasUsers ? [] : [...executables, join(runDir, 'services')];
        const read = await those(attacker, 'read', [...places, '/usr']);
        expect(read.filter((place) => !given.includes(place))).to.have.members([
          ...[own, '/proc/self/environ', '/usr'],
        ]);
      }));

    it('writes to nothing but the folder of its socket', () =>
      attack(async (attacker) => {
        const own = await ownFolder(attacker);
        const { gatewayDataDir: dataDir } = neighbourhood.stack;
        const places = [
          ...['/', '/tmp', '/var/tmp', '/dev', '/dev/shm', '/etc', '/usr', '/run', '/proc/self'],
          ...[dataDir, join(dataDir, 'handlers'), runDir, join(runDir, 'services')],
          ...(await readdir(runDir)).map((name) => join(runDir, name)).filter((path) => path !== own),
        ];
        expect(await those(attacker, 'write', [...places, own])).to.deep.equal([own]);
      }));

    it('signals and traces no process, and has its own environment', () =>
      attack(async (attacker) => {
        const text = async (action: string) => (await attacker.do(action)).text;
        expect(JSON.parse(await text('list&at=/proc'))).to.deep.equal([]);
        expect(JSON.parse(await text('environment'))).to.not.include.members(['SECRET_KEY', 'DATABASE_URL']);
        await attacker.do('kill-all');
        expect(await text('kill-parent')).to.equal('0');
        expect(await text('ptrace')).to.equal('0');
        expect(await text('root')).to.equal('false');
        expect(await text('mount')).to.match(/not permitted|not implemented/);
      }));

    it('connects to nothing but the actor host, and what every user may connect to', () =>
      attack(async (attacker) => {
        const { apiUrl, gatewayUrl, databaseUrl } = neighbourhood.stack;
        const tcp = [apiUrl, gatewayUrl, databaseUrl].map((url) => `127.0.0.1:${new URL(url).port}`);
        const sockets = processesWith('EDGE_SOCKET=').flatMap((pid) => {
          const environment = readFileSync(`/proc/${pid}/environ`, 'latin1');
          return /(?:^|\0)EDGE_SOCKET=([^\0]+)/.exec(environment)?.[1] ?? [];
        });
        const own = join(await ownFolder(attacker), 'handler.sock');
        expect(sockets).to.include(own).and.to.have.length.above(1);
        const services = join(runDir, 'services', 'services.sock');
        // Of the user of the gateway, it can connect to what the product has for itself, which answers nobody without
        // a token.
        const internal = actorHostSocket(runDir);
        expect(await statusOf(internal)).to.equal(401);
        const closed = [...(hasUsers ? [internal] : []), `abstract:${ABSTRACT_NAME}`];
        // Without a user of its own, it can connect to other handlers, whose frames it would have to speak.
        const others = hasUsers ? sockets.filter((path) => path !== own) : [];
        expect(await those(attacker, 'connect', [...tcp, ...closed, ...others, services])).to.deep.equal([
          services,
        ]);
        const why = async (address: string) => (await attacker.do(`why-not&at=${address}`)).text;
        expect(await why('192.0.2.1:80')).to.match(/Network is unreachable/);
        expect(await why('db.example:80')).to.match(/failed to lookup address/);
      }));
  });

describe('what these tests see without a sandbox', function () {
  this.timeout(90_000);

  it('is much, so that these tests can fail', async () => {
    const neighbourhood = await startNeighbourhood({ sandbox: 'limits' });
    try {
      const { apiUrl, dataDir } = neighbourhood.stack;
      await neighbourhood.attack(ATTACKS, LIMITS, async (attacker) => {
        const readable = [dataDir, '/etc/passwd'];
        // What only the gateway's user may read: as root, a handler has a user of its own at every level.
        const ofGateway = [join(dataDir, 'secret.key'), `/proc/${process.pid}/environ`];
        const { text } = await attacker.do('read', { body: [...readable, ...ofGateway].join('\n') });
        expect(JSON.parse(text)).to.deep.equal(
          process.getuid?.() === 0 ? readable : [...readable, ...ofGateway],
        );
        const tcp = `127.0.0.1:${new URL(apiUrl).port}`;
        expect(JSON.parse((await attacker.do('connect', { body: tcp })).text)).to.deep.equal([tcp]);
        expect(JSON.parse((await attacker.do('processes')).text)).to.include(process.pid);
        // Limits hold all the same.
        expect(Number((await attacker.do('files')).text)).to.be.below(1024);
        expect(await attacker.do('memory-in-children')).to.include({ status: 200, text: 'done' });
        await eventually(() => expect(attacker.crashes()[0]).to.match(/it used \d+ MiB of memory/));
        await attacker.recovered();
      });
    } finally {
      await neighbourhood.close();
    }
  });
});
