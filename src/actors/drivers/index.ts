/** The drivers in Node, by service type; those of sqlite and postgres are programs of their own, in `rust/`. */
import type { ServiceType } from '../../model/service-configs.js';
import type { Driver } from '../driver.js';

/** Loaded on demand: client libraries need much memory and time, and few installations use them all. */
const LOADERS: { readonly [T in Exclude<ServiceType, 'postgres' | 'sqlite'>]: () => Promise<Driver<T>> } = {
  mysql: async () => (await import('./mysql/driver.js')).mysqlDriver,
  redis: async () => (await import('./redis/driver.js')).redisDriver,
  mongodb: async () => (await import('./mongodb/driver.js')).mongodbDriver,
  objstore: async () => (await import('./objstore/driver.js')).objstoreDriver,
  memcached: async () => (await import('./memcached/driver.js')).memcachedDriver,
  ftp: async () => (await import('./ftp/driver.js')).ftpDriver,
  http: async () => (await import('./http/driver.js')).httpDriver,
  email: async () => (await import('./email/driver.js')).emailDriver,
};

/** The types of services whose driver runs in Node. */
export const NODE_SERVICE_TYPES = Object.keys(LOADERS) as (keyof typeof LOADERS)[];

/** Loads the driver of a type, with its client library, on first use. */
export async function loadDriver(type: ServiceType): Promise<Driver> {
  if (type === 'postgres' || type === 'sqlite') throw new Error(`The driver of ${type} does not run in Node`);
  // The driver of a type has this type.
  return (await LOADERS[type]()) as Driver;
}
