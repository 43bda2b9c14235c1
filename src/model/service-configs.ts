/**
 * The configs of services: one schema per type, with types, defaults and required keys. A key that is not known is
 * refused: a typo in a config would otherwise show only when the backend is used.
 */
import { type Static, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox';
import { AppError } from '../errors.js';
import { httpConfigProblem } from './http-service.js';
import { mongodbUriProblem, usesTls } from './mongodb-uri.js';
import { type Check, describeProblem, type Problem } from './problems.js';
import { checkOf } from './schema-check.js';
import { isReference, secretsIn, type WithReferences } from './secret-references.js';

/**
 * The mark of a secret: its value is hidden in responses (`REDACT_SECRETS`) and logs, and the description of the API
 * shows the mark.
 */
const SECRET = 'x-secret';
/** The mark of a setting that does not decide where secrets are sent: it may change while they stay hidden. */
const HARMLESS = 'x-harmless';

const Line = Type.String({ format: 'line', maxLength: 1024 });
const HarmlessLine = Type.String({ ...Line, [HARMLESS]: true });
const Text = Type.String({ format: 'text', maxLength: 65_536 });
/** A text, or a reference to a secret of the installation. */
const Secret = Type.Unsafe<string>({
  ...Text,
  type: ['string', 'object'],
  properties: { secret: { type: 'string', format: 'variable-name' } },
  required: ['secret'],
  additionalProperties: false,
  [SECRET]: true,
});
const OptionalText = Type.Optional(Type.Unsafe<string | null>({ ...Text, type: ['string', 'null'] }));
const OptionalSecret = Type.Optional(
  Type.Unsafe<string | null>({ ...Secret, type: ['string', 'null', 'object'], [HARMLESS]: true }),
);
const Port = Type.Integer({ minimum: 1, maximum: 65_535 });
const PoolSize = Type.Integer({ minimum: 1, maximum: 100, default: 10, [HARMLESS]: true });

/** Methods of requests that an `http` service makes. */
export const HTTP_METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const;
export type HttpMethod = (typeof HTTP_METHODS)[number];
const HeaderName = Type.String({ format: 'header-name' });
const HeaderMap = Type.Unsafe<Readonly<Record<string, string>>>({
  type: 'object',
  propertyNames: { format: 'header-name' },
  additionalProperties: { ...Secret, format: 'header-value', maxLength: 4096 },
  maxProperties: 64,
  [HARMLESS]: true,
});

function object<P extends TProperties>(title: string, properties: P, options: Record<string, unknown> = {}) {
  return Type.Object(properties, { title, additionalProperties: false, ...options });
}

/** A boolean that has a value whether or not it was given. */
function flag(fallback: boolean) {
  return Type.Boolean({ default: fallback });
}

function choice<const T extends readonly string[]>(values: T, fallback: T[number]) {
  return Type.Unsafe<T[number]>({ type: 'string', enum: values, default: fallback });
}

function withDefault<T extends TSchema>(schema: T, fallback: Static<T>) {
  return Type.Unsafe<Static<T>>({ ...schema, default: fallback });
}

/** Says what a setting is for, in the description of the API and in forms. */
function described<T extends TSchema>(description: string, schema: T): T {
  return { ...schema, description };
}

/**
 * Schemas of the configs, by service type. Members with a default are required here, because they exist once defaults
 * are filled in; in a request they are optional.
 */
export const SERVICE_CONFIGS = {
  sqlite: object('SqliteConfig', {
    path: described(
      'A file in DATA_DIR/sqlite, or in a folder of SQLITE_DIR: relative to the first, or absolute',
      Line,
    ),
    create_if_missing: flag(true),
    max_size_mb: described(
      'Maximum size of the file, MiB; 1024 when left out',
      Type.Optional(Type.Integer({ minimum: 1, maximum: 1_048_576, [HARMLESS]: true })),
    ),
  }),
  postgres: object('PostgresConfig', {
    host: Line,
    port: withDefault(Port, 5432),
    database: HarmlessLine,
    username: Line,
    password: OptionalSecret,
    ssl_mode: choice(['disable', 'prefer', 'require', 'verify-ca', 'verify-full'], 'prefer'),
    ssl_root_cert: described('PEM; the certificates to trust instead of those of the system', OptionalText),
    pool_size: PoolSize,
  }),
  mysql: object('MysqlConfig', {
    host: Line,
    port: withDefault(Port, 3306),
    database: HarmlessLine,
    username: Line,
    password: OptionalSecret,
    use_ssl: flag(false),
    ssl_root_cert: described(
      'PEM; the certificates to trust instead of the public authorities',
      OptionalText,
    ),
    ssl_verify: described(
      "Whether the server's certificate is verified, with its host name; true when left out",
      Type.Optional(Type.Boolean()),
    ),
    pool_size: PoolSize,
  }),
  redis: object('RedisConfig', {
    host: Line,
    port: withDefault(Port, 6379),
    password: OptionalSecret,
    database: Type.Integer({ minimum: 0, maximum: 2_147_483_647, default: 0, [HARMLESS]: true }),
    use_tls: flag(false),
    ssl_root_cert: Type.Optional(Text),
    allow_scripts: described(
      'Whether handlers may run scripts and functions, which reach all that the account may do; false when left out',
      Type.Optional(Type.Boolean({ [HARMLESS]: true })),
    ),
    pool_size: PoolSize,
  }),
  mongodb: object(
    'MongodbConfig',
    {
      uri: Type.Optional(Secret),
      host: Type.Optional(Line),
      port: described('27017 when `host` is given', Type.Optional(Port)),
      database: Type.Optional(HarmlessLine),
      username: Type.Optional(Line),
      password: OptionalSecret,
      ssl_root_cert: described(
        'PEM; the certificates to trust instead of those of the system, with `tls=true` in the `uri`',
        Type.Optional(Text),
      ),
      pool_size: PoolSize,
    },
    { anyOf: [{ required: ['uri'] }, { required: ['host'] }] },
  ),
  objstore: object('ObjstoreConfig', {
    endpoint: Line,
    access_key: Line,
    secret_key: Secret,
    bucket: HarmlessLine,
    use_ssl: flag(false),
    region: Type.Optional(Line),
    ssl_root_cert: Type.Optional(Text),
  }),
  memcached: object(
    'MemcachedConfig',
    {
      servers: described(
        '`host:port` each; one text with commas is accepted and split',
        Type.Optional(
          Type.Unsafe<string[]>({
            type: ['array', 'string'],
            items: { type: 'string', format: 'line', maxLength: 1024 },
            minItems: 1,
            format: 'line',
          }),
        ),
      ),
      host: Type.Optional(Line),
      port: described('11211 when `host` is given', Type.Optional(Port)),
    },
    { anyOf: [{ required: ['servers'] }, { required: ['host'] }] },
  ),
  ftp: object('FtpConfig', {
    host: Line,
    port: described('By protocol: 21 for ftp and ftps, 22 for sftp', Type.Optional(Port)),
    username: Type.Optional(Line),
    password: OptionalSecret,
    private_key: OptionalSecret,
    protocol: choice(['ftp', 'ftps', 'sftp'], 'ftp'),
    base_path: withDefault(HarmlessLine, '/'),
    timeout_seconds: Type.Integer({ minimum: 1, maximum: 600, default: 30, [HARMLESS]: true }),
    passive: described('True for ftp and ftps; sftp knows no such modes', flag(true)),
    ssl_root_cert: described('For ftps', Type.Optional(Text)),
    host_key: described(
      "For sftp: the SHA-256 fingerprint of the server's key, as `ssh-keygen -l` shows it",
      Type.Optional(Type.String({ format: 'line', pattern: '^SHA256:[A-Za-z0-9+/]{43}=?$' })),
    ),
  }),
  http: object('HttpConfig', {
    base_url: described(
      'Where requests go: scheme, host, port and the path that those of requests are below',
      Line,
    ),
    headers: described('Sent with every request', Type.Optional(HeaderMap)),
    token: described('`Authorization: Bearer`', OptionalSecret),
    username: described('`Authorization: Basic`, with the password', Type.Optional(Line)),
    password: OptionalSecret,
    api_key: OptionalSecret,
    api_key_header: described(
      'The header of the `api_key`; X-API-Key when left out',
      Type.Optional(HeaderName),
    ),
    hosts: described(
      'Other hosts, as `name` or `name:port`, that requests may name in full; none of the above is sent there',
      Type.Optional(Type.Array(Line, { maxItems: 100, [HARMLESS]: true })),
    ),
    methods: described(
      'All when left out',
      Type.Optional(
        Type.Array(Type.Unsafe<HttpMethod>({ type: 'string', enum: [...HTTP_METHODS] }), {
          minItems: 1,
          [HARMLESS]: true,
        }),
      ),
    ),
    allow_private_addresses: described(
      'Whether a host may have an address that is not one of the internet',
      flag(false),
    ),
    ssl_root_cert: Type.Optional(Text),
    connect_timeout_seconds: Type.Integer({ minimum: 1, maximum: 60, default: 5, [HARMLESS]: true }),
    timeout_seconds: Type.Integer({ minimum: 1, maximum: 600, default: 30, [HARMLESS]: true }),
    pool_size: PoolSize,
  }),
  email: object('EmailConfig', {
    host: Line,
    port: described('By encryption: 25 for none, 587 for starttls, 465 for tls', Type.Optional(Port)),
    username: Type.Optional(Line),
    password: OptionalSecret,
    encryption: choice(['none', 'starttls', 'tls'], 'starttls'),
    ssl_root_cert: Type.Optional(Text),
    from_address: Type.String({ format: 'email-address', [HARMLESS]: true }),
    from_name: Type.Optional(HarmlessLine),
  }),
} as const satisfies Record<string, TObject>;

export type ServiceType = keyof typeof SERVICE_CONFIGS;
/** A complete config of one type, with the values of its secrets. */
export type ServiceConfig<T extends ServiceType = ServiceType> = {
  [K in T]: Static<(typeof SERVICE_CONFIGS)[K]>;
}[T];
/** A complete config as it is stored and shown: references may stand for secrets. */
export type StoredConfig<T extends ServiceType = ServiceType> = WithReferences<ServiceConfig<T>>;

export const SERVICE_TYPES = Object.keys(SERVICE_CONFIGS) as ServiceType[];

/** Names of the secret settings of a type. */
export function secretSettings(type: ServiceType): ReadonlySet<string> {
  return settingsMarked(SECRET, type);
}

/** Names of the settings of a type that have several secrets, each with a name of its own. */
export function secretMaps(type: ServiceType): ReadonlySet<string> {
  return settingsWith(type, ({ additionalProperties: members }) => members?.[SECRET] === true);
}

/** Names of the secret settings of all types. */
export const SECRET_SETTINGS: ReadonlySet<string> = new Set(
  SERVICE_TYPES.flatMap((type) => [...secretSettings(type), ...secretMaps(type)]),
);

/** Names of the settings of a type that may change while its secrets stay hidden. */
export function harmlessSettings(type: ServiceType): ReadonlySet<string> {
  return settingsMarked(HARMLESS, type);
}

function settingsMarked(mark: string, type: ServiceType): ReadonlySet<string> {
  return settingsWith(type, (schema) => schema[mark] === true);
}

function settingsWith(type: ServiceType, is: (schema: TSchema) => boolean): ReadonlySet<string> {
  const settings = Object.entries<TSchema>(SERVICE_CONFIGS[type].properties);
  return new Set(settings.flatMap(([name, schema]) => (is(schema) ? [name] : [])));
}

const NO_UNIX_SOCKET = 'must be a name or an address, not a Unix socket';

/** Through such a socket, PostgreSQL may accept the operating system's user of this process instead of a password. */
function isUnixSocket(host: string): boolean {
  return host.startsWith('/');
}

/** Defaults and rules that depend on other keys. */
const DEPENDENT_DEFAULTS: { readonly [K in ServiceType]?: (config: ServiceConfig<K>) => ServiceConfig<K> } = {
  postgres: (config) => {
    if (isUnixSocket(config.host)) throw new AppError('invalid_config', `config.host: ${NO_UNIX_SOCKET}`);
    return config;
  },
  mongodb: (config) => {
    const { uri, password } = config;
    if (isReference(uri)) {
      // Its value is checked where it is used. Who changes it decides where the password is sent.
      if (typeof password !== 'string') return config;
      const message = 'config.password: must refer to a secret too, because config.uri does';
      throw new AppError('invalid_config', message);
    }
    const problem = uri === undefined ? undefined : mongodbUriProblem(uri);
    if (problem !== undefined) throw new AppError('invalid_config', `config.uri: ${problem}`);
    if (config.ssl_root_cert !== undefined && !usesTls(uri ?? '')) {
      const message = 'config.ssl_root_cert: needs a uri with tls=true; otherwise nothing would be verified';
      throw new AppError('invalid_config', message);
    }
    return config.host === undefined ? config : { port: 27_017, ...config };
  },
  memcached: ({ servers, ...config }) => ({
    ...(config.host !== undefined && { port: 11_211 }),
    ...config,
    ...(servers !== undefined && { servers: [servers].flat().flatMap(splitServers) }),
  }),
  ftp: (config) => {
    if (!config.passive && config.protocol !== 'sftp') {
      throw new AppError(
        'invalid_config',
        'config.passive: must be true: active mode, in which the server connects back, is not supported',
      );
    }
    return { port: { ftp: 21, ftps: 21, sftp: 22 }[config.protocol], ...config };
  },
  http: (config) => {
    const problem = httpConfigProblem(config);
    if (problem !== undefined) throw new AppError('invalid_config', `config.${problem}`);
    return config;
  },
  email: (config) => ({ port: { none: 25, starttls: 587, tls: 465 }[config.encryption], ...config }),
};

const checks = Object.fromEntries(
  SERVICE_TYPES.map((type) => [type, checkOf(SERVICE_CONFIGS[type])]),
) as Readonly<Record<ServiceType, Check>>;

/**
 * Checks a config that came from outside and fills in its defaults.
 * @throws AppError invalid_config naming the key
 */
export function parseStoredConfig<T extends ServiceType>(type: T, value: unknown): StoredConfig<T> {
  const config = structuredClone(value);
  const problem = misplacedReference(type, config) ?? checks[type](config);
  if (problem) throw new AppError('invalid_config', describeProblem('config', problem));
  const complete = DEPENDENT_DEFAULTS[type];
  return (complete ? complete(config as ServiceConfig<T>) : config) as StoredConfig<T>;
}

/**
 * The same for a config with the values of its secrets.
 * @throws AppError invalid_config naming the key
 */
export function parseServiceConfig<T extends ServiceType>(type: T, value: unknown): ServiceConfig<T> {
  const config = parseStoredConfig(type, value);
  const [secret] = secretsIn(config);
  if (secret === undefined) return config as ServiceConfig<T>;
  throw new AppError('invalid_config', `config: refers to the secret "${secret}", where its value must be`);
}

/** A reference that stands for a setting that is no secret. */
function misplacedReference(type: ServiceType, config: unknown): Problem | undefined {
  const secrets = secretSettings(type);
  const settings = SERVICE_CONFIGS[type].properties;
  const misplaced = Object.entries(config ?? {}).find(
    ([key, value]) => key in settings && !secrets.has(key) && isReference(value),
  );
  if (!misplaced) return undefined;
  const possible =
    secrets.size === 0 ? 'this type has none' : `those of this type are ${[...secrets].join(', ')}`;
  return { path: [misplaced[0]], message: `is no secret, so it cannot refer to one; ${possible}` };
}

function splitServers(text: string): string[] {
  return text
    .split(',')
    .map((server) => server.trim())
    .filter((server) => server !== '');
}
