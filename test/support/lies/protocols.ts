/** The protocols that are spoken over the network: services for servers that lie. */
import type { Socket } from 'node:net';
import {
  parseServiceConfig,
  type ServiceConfig,
  type ServiceType,
} from '../../../src/model/service-configs.js';
import type { TestCall } from '../actors.js';
import type { Lie } from './lie.js';

interface Protocol {
  readonly type: ServiceType;
  config(port: number): ServiceConfig;
  readonly call: TestCall;
}

const HOST = '127.0.0.1';
const TIMEOUT_MS = 2_000;
const KEY_CALL = { operation: 'get', args: { key: 'k' }, timeoutMs: TIMEOUT_MS };
const LIST_CALL = { operation: 'list', args: { path: '' }, timeoutMs: TIMEOUT_MS };
const MAIL = '{"to":["a@example.com"],"subject":"s","text":"t"}';

const postgres = (ssl_mode: 'disable' | 'require'): Protocol => ({
  type: 'postgres',
  config: (port) => ({ host: HOST, port, database: 'd', username: 'u', ssl_mode, pool_size: 1 }),
  call: { operation: 'query', payload: '{"sql":"SELECT 1","params":[]}', timeoutMs: TIMEOUT_MS },
});
const mysql = (use_ssl: boolean): Protocol => ({
  type: 'mysql',
  config: (port) => ({ host: HOST, port, database: 'd', username: 'u', use_ssl, pool_size: 1 }),
  call: { operation: 'query', payload: '{"sql":"SELECT 1","params":[]}', timeoutMs: TIMEOUT_MS },
});
const redis = (use_tls: boolean): Protocol => ({
  type: 'redis',
  config: (port) => ({ host: HOST, port, use_tls, database: 0, pool_size: 1 }),
  call: KEY_CALL,
});
const mongodb = (options: string): Protocol => ({
  type: 'mongodb',
  config: (port) => ({ uri: `mongodb://${HOST}:${port}/${options}`, database: 'd', pool_size: 1 }),
  call: { operation: 'find', args: { collection: 'c' }, payload: '{}', timeoutMs: TIMEOUT_MS },
});
const fileServer = (protocol: 'ftp' | 'ftps' | 'sftp'): Protocol => ({
  type: 'ftp',
  config: (port) => ({
    host: HOST,
    port,
    protocol,
    username: 'u',
    password: 'p',
    base_path: '/',
    timeout_seconds: 5,
    passive: true,
  }),
  call: LIST_CALL,
});
const email = (encryption: 'none' | 'starttls' | 'tls'): Protocol => ({
  type: 'email',
  config: (port) => ({ host: HOST, port, encryption, from_address: 'a@example.com' }),
  call: { operation: 'send', payload: MAIL, timeoutMs: TIMEOUT_MS },
});
const objstore = (use_ssl: boolean): Protocol => ({
  type: 'objstore',
  config: (port) => ({
    endpoint: `${HOST}:${port}`,
    access_key: 'a',
    secret_key: 's',
    bucket: 'files',
    use_ssl,
  }),
  call: KEY_CALL,
});

const http = (scheme: 'http' | 'https'): Protocol => ({
  type: 'http',
  config: (port) =>
    parseServiceConfig('http', { base_url: `${scheme}://${HOST}:${port}`, allow_private_addresses: true }),
  call: { operation: 'request', args: { method: 'GET', path: '/' }, timeoutMs: TIMEOUT_MS },
});

export const PROTOCOLS = {
  postgres: postgres('disable'),
  'postgres with TLS': postgres('require'),
  mysql: mysql(false),
  'mysql with TLS': mysql(true),
  redis: redis(false),
  'redis with TLS': redis(true),
  mongodb: mongodb(''),
  'mongodb with TLS': mongodb('?tls=true'),
  memcached: { type: 'memcached', config: (port) => ({ servers: [`${HOST}:${port}`] }), call: KEY_CALL },
  ftp: fileServer('ftp'),
  ftps: fileServer('ftps'),
  sftp: fileServer('sftp'),
  email: email('none'),
  'email with STARTTLS': email('starttls'),
  'email with TLS': email('tls'),
  objstore: objstore(false),
  'objstore with TLS': objstore(true),
  http: http('http'),
  'http with TLS': http('https'),
} as const satisfies Readonly<Record<string, Protocol>>;

export type ProtocolName = keyof typeof PROTOCOLS;

/** Lies of one protocol. */
export function liesOf(
  name: ProtocolName,
  servers: Readonly<Record<string, (socket: Socket) => void>>,
  more: Partial<Lie> = {},
): readonly Lie[] {
  const protocol: Protocol = PROTOCOLS[name];
  return Object.entries(servers).map(([what, serve]) => ({
    name: `${name}: ${what}`,
    type: protocol.type,
    config: (port) => protocol.config(port),
    call: protocol.call,
    serve,
    ...more,
  }));
}
