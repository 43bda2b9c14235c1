/** All drivers, by service type. A new one is added here. */
import type { ServiceType } from '../../service-configs.js';
import type { Driver } from '../driver.js';

/** Client libraries take much memory and time to load, and few installations use them all. */
const LOADERS: { readonly [T in ServiceType]: () => Promise<Driver<T>> } = {
  sqlite: async () => (await import('./sqlite.js')).sqliteDriver,
  postgres: async () => (await import('./postgres.js')).postgresDriver,
  mysql: async () => (await import('./mysql.js')).mysqlDriver,
  redis: async () => (await import('./redis.js')).redisDriver,
  mongodb: async () => (await import('./mongodb.js')).mongodbDriver,
  objstore: async () => (await import('./objstore.js')).objstoreDriver,
  memcached: async () => (await import('./memcached.js')).memcachedDriver,
  ftp: async () => (await import('./ftp.js')).ftpDriver,
  email: async () => (await import('./email.js')).emailDriver,
};

/** Loads the driver of a type, with its client library, when it is first asked for. */
export async function loadDriver(type: ServiceType): Promise<Driver> {
  // A type has the driver of its name.
  return (await LOADERS[type]()) as Driver;
}
