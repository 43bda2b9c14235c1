/** All drivers, by service type. A new one is added here. */
import type { Drivers } from '../host.js';
import { emailDriver } from './email.js';
import { ftpDriver } from './ftp.js';
import { memcachedDriver } from './memcached.js';
import { mongodbDriver } from './mongodb.js';
import { mysqlDriver } from './mysql.js';
import { objstoreDriver } from './objstore.js';
import { postgresDriver } from './postgres.js';
import { redisDriver } from './redis.js';
import { sqliteDriver } from './sqlite.js';

export const DRIVERS: Drivers = {
  sqlite: sqliteDriver,
  postgres: postgresDriver,
  mysql: mysqlDriver,
  redis: redisDriver,
  mongodb: mongodbDriver,
  objstore: objstoreDriver,
  memcached: memcachedDriver,
  ftp: ftpDriver,
  email: emailDriver,
};
