/** What the configs and the requests of `http` services have in common: URLs and headers. */

/** Headers of the connection, and of how a message ends on it. Only the client may set them. */
const RESERVED_HEADERS = new Set([
  ...[
    'connection',
    'content-length',
    'expect',
    'host',
    'http2-settings',
    'keep-alive',
    'proxy-authorization',
  ],
  ...['proxy-connection', 'te', 'trailer', 'transfer-encoding', 'upgrade'],
]);

/** Why nobody may set a header, or undefined. */
export function headerProblem(name: string): string | undefined {
  return RESERVED_HEADERS.has(name.toLowerCase()) ? `"${name}" is set by the connection itself` : undefined;
}

/** The URL of a config, or why it is none. */
export function parseBaseUrl(text: string): URL | string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    return 'must be a URL that begins with https:// or http://';
  }
  if (url.username || url.password)
    return 'must have no user and no password; they have settings of their own';
  if (url.search || url.hash) return 'must have no query and no fragment';
  return url;
}

/** The host and port of an entry of `hosts` in the form of URLs, or undefined. */
export function parseHost(text: string, protocol: string): string | undefined {
  const url = URL.canParse(`${protocol}//${text}`) ? new URL(`${protocol}//${text}`) : undefined;
  const isHost = url && url.pathname === '/' && !url.search && !url.hash && !url.username && !url.password;
  return isHost && !/[/\\?#@]/.test(text) ? url.host : undefined;
}

interface HttpSettings {
  readonly base_url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly hosts?: readonly string[];
  readonly token?: unknown;
  readonly username?: string;
  readonly password?: unknown;
  readonly api_key?: unknown;
  readonly api_key_header?: string;
  readonly ssl_root_cert?: string;
}

/** What is wrong with a config, beginning with the setting, that a schema cannot say. */
export function httpConfigProblem(config: HttpSettings): string | undefined {
  const url = parseBaseUrl(config.base_url);
  if (typeof url === 'string') return `base_url: ${url}`;
  for (const host of config.hosts ?? []) {
    if (parseHost(host, url.protocol) === undefined) {
      return `hosts: "${host}" must be a host, with a port if it is not that of ${url.protocol}//`;
    }
  }
  if (config.ssl_root_cert !== undefined && url.protocol !== 'https:') {
    return 'ssl_root_cert: needs a base_url that begins with https://; otherwise nothing would be verified';
  }
  if (isGiven(config.token) && config.username !== undefined)
    return 'token: must not be given beside username';
  if (isGiven(config.password) && config.username === undefined) return 'password: needs a username';
  if (config.username?.includes(':')) return 'username: must have no colon, which ends it';
  if (config.api_key_header !== undefined && !isGiven(config.api_key))
    return 'api_key_header: needs an api_key';
  return headersProblem(config);
}

function headersProblem(config: HttpSettings): string | undefined {
  const credentials = credentialHeaders(config);
  const seen = new Set<string>();
  for (const name of Object.keys(config.headers ?? {})) {
    const key = name.toLowerCase();
    const problem = headerProblem(name);
    if (problem) return `headers: ${problem}`;
    if (credentials.includes(key)) return `headers: "${name}" is set by the credentials of this config`;
    if (seen.has(key)) return `headers: "${name}" is given twice`;
    seen.add(key);
  }
  const problem = config.api_key_header === undefined ? undefined : headerProblem(config.api_key_header);
  return problem && `api_key_header: ${problem}`;
}

/** The names of the headers that hold credentials, in lower case. */
function credentialHeaders({ token, username, api_key, api_key_header }: HttpSettings): string[] {
  return [
    ...(isGiven(token) || username !== undefined ? ['authorization'] : []),
    ...(isGiven(api_key) ? [apiKeyHeader(api_key_header).toLowerCase()] : []),
  ];
}

export function apiKeyHeader(name: string | undefined): string {
  return name ?? 'X-API-Key';
}

function isGiven(secret: unknown): boolean {
  return secret !== undefined && secret !== null;
}
