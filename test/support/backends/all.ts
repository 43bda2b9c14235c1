/** A running backend of every service type. */
import { join } from 'node:path';
import { parseServiceConfig, type ServiceType } from '../../../src/model/service-configs.js';
import type { TestBackend } from '../backend.js';
import { createDatabase } from '../postgres.js';
import { giveToServices } from '../sqlite-folder.js';
import { tempDir } from '../temp.js';
import { startFtpBackend } from './ftp.js';
import { startHttpBackend } from './http.js';
import { startMariadbBackend } from './mariadb.js';
import { startMemcachedBackend } from './memcached.js';
import { startMongodbBackend } from './mongodb.js';
import { startRedisBackend } from './redis.js';
import { startS3Backend } from './s3.js';
import { startSmtpBackend } from './smtp.js';

/** The part of a backend that its users need. */
export type RunningBackend<T extends ServiceType = ServiceType> = Pick<TestBackend<T>, 'config' | 'remove'>;

/** Starts one, by type. */
export const BACKENDS: { readonly [T in ServiceType]: () => Promise<RunningBackend<T>> } = {
  sqlite: async () => {
    const folder = await tempDir('sqlite-backend');
    await giveToServices(folder.path);
    const config = parseServiceConfig('sqlite', { path: join(folder.path, 'backend.db') });
    return { config, remove: () => folder.remove() };
  },
  // The server of the tests' own databases, with a database to itself.
  postgres: async () => {
    const { url, drop } = await createDatabase();
    const { hostname: host, port, username, password, pathname } = new URL(url);
    const database = pathname.slice(1);
    const config = { host, port: Number(port), database, username, password };
    return { config: parseServiceConfig('postgres', config), remove: drop };
  },
  mysql: () => startMariadbBackend(),
  redis: () => startRedisBackend(),
  mongodb: startMongodbBackend,
  objstore: () => startS3Backend(),
  memcached: startMemcachedBackend,
  ftp: () => startFtpBackend(),
  http: () => startHttpBackend(),
  email: () => startSmtpBackend(),
};
