/** All drivers, by service type. A new one is added here. */
import type { Drivers } from '../host.js';
import { ftpDriver } from './ftp.js';
import { memcachedDriver } from './memcached.js';
import { objstoreDriver } from './objstore.js';
import { postgresDriver } from './postgres.js';
import { redisDriver } from './redis.js';

export const DRIVERS = {
  postgres: postgresDriver,
  redis: redisDriver,
  objstore: objstoreDriver,
  memcached: memcachedDriver,
  ftp: ftpDriver,
} as unknown as Drivers;
