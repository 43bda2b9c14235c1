/** What handlers can see and reach of their machine: next to nothing, at each level. */
import { type FileHandle, open, readdir, readFile, readlink, stat } from 'node:fs/promises';
import { get } from 'node:http';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { actorHostSocket, runDirectory } from '../../../src/bootstrap/run-directory.js';
import type { ConfiningLevel } from '../../../src/sandbox/probe.js';
import { HAS_UNTRUSTED_USERS } from '../../../src/util/untrusted-users.js';
import type { TestBackend } from '../../support/backend.js';
import { startRedisBackend } from '../../support/backends/redis.js';
import { eventually } from '../../support/eventually.js';
import { describeAttacks, HOST_NETWORK, ISOLATION } from '../../support/hostile/attacks.js';
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
const O_ACCMODE = 3;

for (const user of USERS)
  describeAttacks(`what handlers can see and reach${named(user)}`, ISOLATION, (level, it) => {
    /** Whether each handler has a user of its own. */
    const hasUsers = HAS_UNTRUSTED_USERS && user === undefined;
    /** Whether it can connect to sockets of the product that are not for it, if it finds them. */
    const hasClosedSockets = level === 'namespaces' || hasUsers;
    const abstractName = `edge-gateway-test-${process.pid}-${level}`;
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
      abstract = createServer().listen(`\0${abstractName}`);
      neighbourhood = await startNeighbourhood({
        env: { SECRET_KEY: SECRET },
        processes: ['web', 'worker', 'actor-host'],
        sandbox: level,
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
    const pidsOfProduct = () => [...neighbourhood.stack.processes.values()].map(({ pid }) => pid);

    /** Files of the product, and of the machine, that exist. */
    async function files(): Promise<string[]> {
      const { gatewayDataDir: dataDir } = neighbourhood.stack;
      const pids = [process.pid, ...pidsOfProduct()];
      return [
        ...[dataDir, join(dataDir, 'artifacts'), join(dataDir, 'secret.key'), ...(await executables())],
        ...[runDir, ...(await readdir(runDir)).map((name) => join(runDir, name))],
        ...[
          process.cwd(),
          process.execPath,
          '/etc/passwd',
          '/etc/hostname',
          '/root',
          '/home',
          '/var',
          '/sys',
        ],
        ...pids.flatMap((pid) => ['environ', 'mem', 'cmdline', 'maps'].map((name) => `/proc/${pid}/${name}`)),
      ].filter((place) => !place.startsWith('/usr/'));
    }

    async function executables(): Promise<string[]> {
      const handlers = join(neighbourhood.stack.gatewayDataDir, 'handlers');
      const names = await readdir(handlers);
      expect(names).not.to.deep.equal([]);
      return names.map((name) => join(handlers, name));
    }

    it('a handler reads no file but its own', () =>
      attack(async (attacker) => {
        const own = await ownOf(attacker);
        // In namespaces, these are its own.
        const ofMachine = [
          ...['/etc', '/', '/tmp', '/dev', '/dev/zero', '/dev/shm'],
          ...['/proc', '/proc/1/environ'],
        ];
        const ofKernel = [
          'cmdline',
          'cpuinfo',
          'keys',
          'locks',
          'meminfo',
          'net/unix',
          'sys/kernel/hostname',
        ];
        const places = [
          ...(await files()),
          ...ofKernel.map((name) => `/proc/${name}`),
          ...(level === 'landlock' ? ofMachine : ['/handler']),
          ...[own.folder, '/proc/self/environ', '/usr'],
        ];
        const read = await those(attacker, 'read', [...new Set(places)]);
        // At the level `landlock`, it has these where they are. As another user than the gateway, it runs the one, and
        // connects to what is in the other, and lists neither.
        const given =
          level === 'landlock' && !hasUsers ? [...(await executables()), join(runDir, 'services')] : [];
        expect(read.filter((place) => !given.includes(place))).to.have.members([
          ...[own.folder, '/proc/self/environ', '/usr'],
          ...(level === 'namespaces' ? ['/handler'] : []),
        ]);
        if (level === 'landlock') return;
        expect(JSON.parse(await answerTo(attacker, 'list&at=/run'))).to.have.members(['/run/services']);
        // It knows the names of the sockets it is told. Not as root, it runs as the user who owns the folder.
        expect(JSON.parse(await answerTo(attacker, 'list&at=/run/services'))).to.have.members(
          hasUsers ? [] : ['/run/services/host', '/run/services/services.sock'],
        );
      }));

    it('a handler inherits no file that was open when the gateway was started', () =>
      attack(async (attacker) => {
        const { pid } = await attacker.view();
        for (const owner of [...pidsOfProduct(), pid]) {
          const names = await readdir(`/proc/${owner}/fd`);
          const files = await Promise.all(
            names.map((name) => readlink(`/proc/${owner}/fd/${name}`).catch(String)),
          );
          expect(files, `of process ${owner}`).not.to.include(join(folder.path, 'file'));
        }
      }));

    it('a handler writes to nothing but its own folder', () =>
      attack(async (attacker) => {
        const own = await ownOf(attacker);
        const ofMachine = ['/tmp', '/var/tmp', '/dev/shm', '/proc/self'];
        const places = [
          ...['/usr', '/usr/bin', '/etc', '/', '/dev', '/run', '/proc/sys/kernel/hostname', own.services],
          ...(level === 'landlock' ? ofMachine : ['/handler', '/run/services']),
          ...(await files()),
        ].filter((place) => place !== own.folder);
        expect(await those(attacker, 'write', [...places, own.folder])).to.deep.equal([own.folder]);
      }));

    it('a handler cannot write to a disk of this machine, not even through an open file', () =>
      attack(async (attacker) => {
        const { pid } = await attacker.view();
        for (const name of await readdir(`/proc/${pid}/fd`)) {
          if (!(await stat(`/proc/${pid}/fd/${name}`)).isFile()) continue;
          const info = await readFile(`/proc/${pid}/fdinfo/${name}`, 'utf8');
          const flags = Number.parseInt(/^flags:\s*(\d+)/m.exec(info)?.[1] ?? '', 8);
          expect(flags & O_ACCMODE, `${await readlink(`/proc/${pid}/fd/${name}`)} is open to write`).to.equal(
            0,
          );
        }
        if (level === 'landlock') return;
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

    it('a handler sees no process, environment or memory of others, and cannot signal or trace any', () =>
      attack(async (attacker) => {
        await seesNoProcess(attacker, level);
        expect(JSON.parse(await answerTo(attacker, 'environment'))).to.have.members([
          'EDGE_SOCKET',
          'EDGE_CONTROL_FD',
          'EDGE_PROTOCOL',
          'EDGE_LOG_FD',
          'EDGE_MAX_THREADS',
          'EDGE_ENDPOINT_ID',
          'EDGE_SERVICES_SOCKET',
          'EDGE_SERVICES_TOKEN',
          'EDGE_SERVICES_TIMEOUT_MS',
          'MALLOC_ARENA_MAX',
          ...(level === 'landlock' ? ['TMPDIR'] : []),
        ]);
        await answerTo(attacker, 'kill-all');
        expect(await answerTo(attacker, 'kill-parent')).to.equal('0');
        expect(await answerTo(attacker, 'ptrace')).to.equal('0');
        expect(await answerTo(attacker, 'root')).to.equal('false');
        expect(await answerTo(attacker, 'mount')).to.match(/not permitted|not implemented/);
      }));

    /** Where something listens that a handler has no business with. */
    async function listeners(own: Own): Promise<{ tcp: string[]; unix: string[] }> {
      const { apiUrl, gatewayUrl, databaseUrl } = neighbourhood.stack;
      const { host, port } = redis.config as { host: string; port: number };
      const sockets = await Promise.all(
        processesWith('EDGE_SOCKET=').map(async (pid) => ({ pid, path: await variable(pid, 'EDGE_SOCKET') })),
      );
      // Perhaps those of another gateway on this machine, too.
      expect(sockets.map(({ path }) => path)).to.include(own.socket);
      expect(sockets).to.have.length.above(1);
      const handlers = [
        // As the gateway connects to them in namespaces.
        ...(level === 'namespaces' ? sockets.map(({ pid, path }) => `/proc/${pid}/root${path}`) : []),
        ...sockets.flatMap(({ path = '' }) => (path === own.socket ? [] : [path])),
      ];
      const ofProduct = [actorHostSocket(runDir), ...handlers];
      return {
        tcp: [
          ...[apiUrl, gatewayUrl, databaseUrl].map((url) => `127.0.0.1:${new URL(url).port}`),
          `${host === 'localhost' ? '127.0.0.1' : host}:${port}`,
        ],
        unix: [
          ...(hasClosedSockets ? ofProduct : []),
          ...(level === 'namespaces' ? [join(runDir, 'services', 'services.sock')] : []),
          `abstract:${abstractName}`,
        ],
      };
    }

    it('a handler connects to nothing but the actor host', () =>
      attack(async (attacker) => {
        const own = await ownOf(attacker);
        const { tcp, unix } = await listeners(own);
        expect(await those(attacker, 'connect', [...tcp, ...unix, own.services])).to.deep.equal([
          own.services,
        ]);
        // What can be reached where these are not closed: it would have to have a token, and to speak frames.
        expect(await statusOf(actorHostSocket(runDir))).to.equal(401);
        // As a handler's author gets to see it.
        expect(await answerTo(attacker, 'why-not&at=192.0.2.1:80')).to.match(/Network is unreachable/);
        expect(await answerTo(attacker, 'why-not&at=db.example:80')).to.match(/failed to lookup address/);
      }));

    it('a handler finds the socket of a restarted actor host', () =>
      attack(async (attacker) => {
        const { services } = await ownOf(attacker);
        await neighbourhood.stack.processes.get('actor-host')?.end();
        expect(await those(attacker, 'connect', [services])).to.deep.equal([]);
        await neighbourhood.stack.start('actor-host');
        expect(await those(attacker, 'connect', [services])).to.deep.equal([services]);
      }));
  });

describeAttacks('what handlers can reach with HANDLER_NETWORK=host', HOST_NETWORK, (level, it) => {
  let neighbourhood: Neighbourhood;
  before(async () => {
    neighbourhood = await startNeighbourhood({ env: { HANDLER_NETWORK: 'host' }, sandbox: level });
  });
  after(() => neighbourhood.close());

  it('HANDLER_NETWORK=host gives a handler the network of the machine, and only the files for it', () =>
    neighbourhood.attack(ATTACKS, LIMITS, async (attacker) => {
      const { apiUrl, databaseUrl, dataDir } = neighbourhood.stack;
      const tcp = [apiUrl, databaseUrl].map((url) => `127.0.0.1:${new URL(url).port}`);
      const noActorHost = join(await runDirectory(dataDir), 'services', 'services.sock');
      expect(await those(attacker, 'connect', [...tcp, noActorHost])).to.deep.equal(tcp);
      expect(await answerTo(attacker, 'why-not&at=localhost:1')).to.match(/refused/);
      const files = [dataDir, '/etc/passwd', '/etc/ssl/private', '/etc/resolv.conf', '/etc/ssl/certs'];
      expect(await those(attacker, 'read', files)).to.deep.equal(['/etc/resolv.conf', '/etc/ssl/certs']);
      await seesNoProcess(attacker, level);
    }));
});

async function answerTo(attacker: Attacker, action: string, places?: readonly string[]): Promise<string> {
  const { status, text } = await attacker.do(action, places && { body: places.join('\n') });
  expect(status, text).to.equal(200);
  return text;
}

/** Those of the places for which an action worked. */
async function those(attacker: Attacker, action: string, places: readonly string[]): Promise<string[]> {
  return JSON.parse(await answerTo(attacker, action, places)) as string[];
}

async function seesNoProcess(attacker: Attacker, level: ConfiningLevel): Promise<void> {
  // Without namespaces, /proc is that of the machine, which cannot be listed.
  const action = level === 'namespaces' ? 'processes' : 'list&at=/proc';
  expect(JSON.parse(await answerTo(attacker, action))).to.deep.equal([]);
}

/** What a handler was given, as it knows it. */
interface Own {
  readonly folder: string;
  readonly socket: string;
  readonly services: string;
}

async function ownOf(attacker: Attacker): Promise<Own> {
  const { pid } = await attacker.view();
  if (pid === null) throw new Error('the attacker has no process');
  const given = async (name: string) => (await variable(pid, name)) ?? expect.fail(`no ${name}`);
  return {
    folder: (await variable(pid, 'TMPDIR')) ?? '/tmp',
    socket: await given('EDGE_SOCKET'),
    services: await given('EDGE_SERVICES_SOCKET'),
  };
}

/** A variable that a process was started with. */
async function variable(pid: number, name: string): Promise<string | undefined> {
  const environment = await readFile(`/proc/${pid}/environ`, 'latin1');
  return new RegExp(`(?:^|\\0)${name}=([^\\0]+)`).exec(environment)?.[1];
}

/** What a request without a token gets there. */
function statusOf(socketPath: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    get({ socketPath, path: '/' }, (response) => {
      response.resume();
      resolve(response.statusCode);
    }).once('error', reject);
  });
}

describe('what these tests see without a sandbox', function () {
  this.timeout(90_000);

  it('a handler without a sandbox reads files, sees processes and connects, so that these tests can fail', async () => {
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
