/** The web side of an actor host in this process: real drivers and a real server, without a database of its own. */
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { actorFiles } from '../../../src/actors/actor-files.js';
import { objstoreDriver } from '../../../src/actors/drivers/objstore/driver.js';
import { ServiceError } from '../../../src/actors/service-error.js';
import { type ActorHostView, createWebServer } from '../../../src/actors/web-server.js';
import type { ServiceConfig } from '../../../src/model/service-configs.js';
import type { Database } from '../../../src/store/database.js';
import { registerNode, removeNode } from '../../../src/store/nodes.js';
import { startActor, tryConnection } from '../actors.js';
import { createTestLog, type TestLog } from '../log.js';
import { keepAlive } from '../nodes.js';
import { tempDir } from '../temp.js';

export interface ObjectHost {
  readonly socket: string;
  /** Under the address of this machine, for clients with the token. */
  readonly url: string;
  readonly logged: TestLog;
  /** Leaves the nodes and closes everything. */
  close(): Promise<void>;
}

export interface ObjectHostOptions {
  readonly store: Database;
  readonly token: string;
  /** The active services by their ids, the one that has been active longest first. */
  readonly services: readonly (readonly [string, ServiceConfig<'objstore'>])[];
  /** The node data it publishes; all by default. */
  readonly info?: (info: { socket: string; url: string }) => Readonly<Record<string, string>>;
  /** The host name it reports; by default that of this machine. */
  readonly hostname?: string;
}

/** Starts it, and registers it as a node. */
export async function startObjectHost(options: ObjectHostOptions): Promise<ObjectHost> {
  const { store, token, services, info = (all) => all } = options;
  const logged = createTestLog();
  const folder = await tempDir('host');
  const actors = new Map(services.map(([id, config]) => [id, startActor(objstoreDriver, config)]));
  const configs = new Map(services);
  const view: ActorHostView = {
    testService: async (id) => {
      const config = configs.get(id);
      return config && tryConnection(objstoreDriver, config);
    },
    objectFiles: (id = services[0]?.[0]) => {
      const [actor, config] = id === undefined ? [] : [actors.get(id), configs.get(id)];
      if (id === undefined || !actor || !config)
        throw new ServiceError('inactive', 'no object storage is active');
      return { serviceId: id, files: actorFiles(actor, config.bucket) };
    },
  };
  const socket = join(folder.path, 'actors.sock');
  const local = createWebServer(view, { log: logged.log, tokens: [token] });
  const remote = createWebServer(view, { log: logged.log, tokens: [token] });
  await new Promise<void>((resolve) => local.listen(socket, resolve));
  await new Promise<void>((resolve) => remote.listen(0, '127.0.0.1', resolve));
  const address = remote.address();
  if (typeof address !== 'object' || address === null) throw new Error('A TCP server has no port');
  const url = `http://127.0.0.1:${address.port}`;
  const id = randomUUID();
  await registerNode(store, {
    id,
    kind: 'actor-host',
    hostname: options.hostname ?? hostname(),
    pid: process.pid,
    pid_namespace: '',
    info: info({ socket, url }),
  });
  await keepAlive(store, id);
  return {
    socket,
    url,
    logged,
    close: async () => {
      await removeNode(store, id);
      for (const server of [local, remote]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
      await Promise.all([...actors.values()].map((actor) => actor.drain()));
      await folder.remove();
    },
  };
}
