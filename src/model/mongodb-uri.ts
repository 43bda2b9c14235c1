/**
 * The options that a MongoDB connection string may have. Others read files of this machine, name log files, load
 * optional packages, or sign in with credentials of the machine (Kerberos, AWS, OIDC of cloud environments).
 */

/** Allowed options, whatever the case of letters. Limits of the driver's own take precedence over those here. */
const OPTIONS = [
  ...[
    'appName',
    'authMechanism',
    'authSource',
    'connectTimeoutMS',
    'directConnection',
    'heartbeatFrequencyMS',
  ],
  ...['journal', 'loadBalanced', 'localThresholdMS', 'maxConnecting', 'maxIdleTimeMS', 'maxPoolSize'],
  ...['maxStalenessSeconds', 'minPoolSize', 'readConcernLevel', 'readPreference', 'readPreferenceTags'],
  ...['replicaSet', 'retryReads', 'retryWrites', 'serverMonitoringMode', 'serverSelectionTimeoutMS'],
  ...['socketTimeoutMS', 'srvMaxHosts', 'srvServiceName', 'ssl', 'timeoutMS', 'tls'],
  ...['tlsAllowInvalidCertificates', 'tlsAllowInvalidHostnames', 'tlsInsecure', 'w', 'waitQueueTimeoutMS'],
  ...['wtimeoutMS'],
];
const ALLOWED: ReadonlySet<string> = new Set(OPTIONS.map((name) => name.toLowerCase()));

/** Those that need nothing but the user name and password of the config. */
const MECHANISMS: ReadonlySet<string> = new Set(['DEFAULT', 'PLAIN', 'SCRAM-SHA-1', 'SCRAM-SHA-256']);

const USER_INFO = /^[^/]+:\/\/(?:[^@]*@)?/;

/** @returns why a connection string is refused, without its values; undefined if its options are allowed */
export function mongodbUriProblem(uri: string): string | undefined {
  const rest = uri.replace(USER_INFO, '');
  if (/\.sock(?:$|[,:/?])/i.test(rest.split('?', 1)[0] ?? '')) return 'must name hosts, not Unix sockets';
  const start = rest.indexOf('?');
  if (start === -1) return undefined;
  const query = rest.slice(start + 1);
  for (const [name, value] of new URLSearchParams(query)) {
    if (!ALLOWED.has(name.toLowerCase())) {
      // With an unescaped `@` it may be a part of a password.
      const option = query.includes('@') ? 'an option' : `the option ${JSON.stringify(name)}`;
      const hint = /^(tls|ssl)CA/i.test(name) ? '; the certificate to trust belongs in ssl_root_cert' : '';
      return `${option} is not allowed${hint}. Allowed are ${OPTIONS.join(', ')}`;
    }
    if (name.toLowerCase() === 'authmechanism' && !MECHANISMS.has(value.toUpperCase()))
      return `this authMechanism is not allowed. Allowed are ${[...MECHANISMS].join(', ')}`;
  }
  return undefined;
}

/** Whether a connection string asks for TLS; with `mongodb+srv` it is the default. */
export function usesTls(uri: string): boolean {
  const options = new URLSearchParams(uri.slice(uri.indexOf('?') + 1).toLowerCase());
  const option = options.get('tls') ?? options.get('ssl');
  return option === null ? uri.startsWith('mongodb+srv:') : option === 'true';
}
