/** All drivers, by service type. A new one is added here. */
import type { ServiceType } from '../../model/service-configs.js';
import type { Driver } from '../driver.js';

/** Loaded on demand: client libraries need much memory and time, and few installations use them all. */
const LOADERS: { readonly [T in ServiceType]: () => Promise<Driver<T>> } = {
  sqlite: async () => (await import('./sqlite/driver.js')).sqliteDriver,
  postgres: async () => (await import('./postgres/driver.js')).postgresDriver,
  mysql: async () => (await import('./mysql/driver.js')).mysqlDriver,
  redis: async () => (await import('./redis/driver.js')).redisDriver,
  mongodb: async () => (await import('./mongodb/driver.js')).mongodbDriver,
  objstore: async () => (await import('./objstore/driver.js')).objstoreDriver,
  memcached: async () => (await import('./memcached/driver.js')).memcachedDriver,
  ftp: async () => (await import('./ftp/driver.js')).ftpDriver,
  email: async () => (await import('./email/driver.js')).emailDriver,
};

/** Loads the driver of a type, with its client library, on first use. */
export async function loadDriver(type: ServiceType): Promise<Driver> {
  // The driver of a type has this type.
  return (await LOADERS[type]()) as Driver;
}
