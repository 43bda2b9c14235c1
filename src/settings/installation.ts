/** Where an installation is reached, where its data is, and who may use it. */
import {
  emailAddress,
  flag,
  integer,
  jsonObject,
  oneOf,
  optionalInteger,
  text,
  textWithDefault,
  tlsAddress,
  webAddress,
} from './setting.js';

/** Values of `SANDBOX`. */
export const SANDBOX_MODES = ['auto', 'required', 'landlock', 'off'] as const;
const ACME_CHALLENGES = ['http-01', 'tls-alpn-01'] as const;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

export const CONNECTIONS = {
  DATABASE_URL: text(
    'embedded server',
    'PostgreSQL connection URL. Without it `npm run up` starts an embedded server in `DATA_DIR`.',
  ),
  REDIS_URL: text(
    'none',
    'Redis connection URL for the job queues and the limits of rates. Without it the queues live in PostgreSQL, and gateways share limits.',
  ),
  HOST: textWithDefault('127.0.0.1', 'Address the management API and the gateway listen on.'),
  PORT: integer(8081, 0, 65535, 'Port of the management API.'),
  GATEWAY_PORT: integer(8080, 0, 65535, 'Port of the gateway: the public HTTP traffic.'),
  TLS_PORT: optionalInteger(
    0,
    65535,
    'When set, the gateway serves TLS on this port, for the domains that have a certificate.',
  ),
  TLS_PUBLIC_PORT: optionalInteger(
    1,
    65535,
    'The port by which clients reach `TLS_PORT`, where that is another one; for redirects.',
  ),
  HTTP_REDIRECT: flag('When true, requests without TLS are redirected to TLS (308).'),
  HSTS_SECONDS: integer(
    0,
    0,
    4_294_967_295,
    'When set, answers over TLS have `Strict-Transport-Security`: for so long, browsers use nothing else for the host. `31536000` is a year.',
  ),
  ACME_DIRECTORY_URL: tlsAddress(
    'The directory of an ACME server, such as `https://acme-v02.api.letsencrypt.org/directory`. When set, workers order certificates for all domains that have none that a user has set; who sets it agrees to the terms of the server. Needs TLS_PORT. docs/TLS.md has the steps.',
    'https://acme-v02.api.letsencrypt.org/directory',
  ),
  ACME_EMAIL: emailAddress('Where the ACME server writes to, should something be wrong with certificates.'),
  ACME_CHALLENGE: oneOf(
    ACME_CHALLENGES,
    'http-01',
    'How the ACME server finds out whether a host leads here: `http-01` asks on port 80, which has to lead to GATEWAY_PORT, `tls-alpn-01` on port 443, which has to lead to TLS_PORT.',
  ),
  GATEWAY_INTERNAL_PORT: optionalInteger(
    1,
    65535,
    'When set, the gateway also takes requests of web and worker processes of other machines on this port of `HOST`, such as trials of versions and queued requests.',
  ),
  DATA_DIR: textWithDefault('./data', 'Folder for all state of this machine.'),
  LOG_LEVEL: oneOf(LOG_LEVELS, 'info', 'Lowest level that is logged.'),
  METRICS_PORT: optionalInteger(
    0,
    65535,
    'When set, the process also serves its own `/metrics` on this port of `HOST`, to everybody who reaches it. `npm run up` leaves it out: `/metrics` of the management API has all processes of a machine.',
  ),
} as const;

export const ARTIFACT_STORE = {
  ARTIFACTS_URL: text(
    '`DATA_DIR/artifacts`',
    'Where compiled handlers are stored: a folder, or `s3://bucket/prefix` for several machines. Each database needs its own: artifacts that no endpoint, no apply and no build of the last month refers to are deleted.',
  ),
  S3_ENDPOINT: text('AWS', 'URL of the S3 server behind an `s3://` `ARTIFACTS_URL`.'),
  S3_REGION: textWithDefault('us-east-1', 'Region of the artifact bucket.'),
  S3_ACCESS_KEY: text('none', 'Access key of the artifact bucket.'),
  S3_SECRET_KEY: text('none', 'Secret key of the artifact bucket.'),
} as const;

export const ACCESS = {
  API_KEY: text(
    'none',
    'The credential of an admin without a name, in `Authorization: Bearer <key>`. Without it and without users, the API is open on a loopback address, and closed elsewhere.',
  ),
  SESSION_IDLE_MINUTES: integer(
    720,
    1,
    525_600,
    'How long a session of a browser lives without a request, minutes.',
  ),
  SESSION_MAX_HOURS: integer(168, 1, 8_760, 'How long a session of a browser lives at most, hours.'),
  AUDIT_RETENTION_DAYS: integer(365, 1, 36_500, 'How long entries of the audit are kept, days.'),
  ALLOWED_HOSTS: text(
    'none',
    'Comma-separated host names, besides IP addresses, localhost and that of PUBLIC_URL, under which browsers may reach the API.',
  ),
  PUBLIC_URL: webAddress(
    'Under which browsers reach the management API, such as `https://edge.example`. Its host is one of ALLOWED_HOSTS; with https, cookies of sessions for this host are `Secure`.',
    'https://edge.example',
  ),
  SECRET_KEY: text(
    '`DATA_DIR/secret.key`',
    'Key that encrypts service configs and secrets at rest, 16 characters or more. Generated in `DATA_DIR` when unset. Must be the same on all machines.',
  ),
  SECRET_KEY_NEXT: text(
    'none',
    'Key that will be `SECRET_KEY`: what other machines encrypt and sign with it is accepted already. docs/DEPLOY.md says how the key is rotated.',
  ),
  SECRET_KEY_PREVIOUS: text(
    'none',
    'Key that was `SECRET_KEY`: what was encrypted and signed with it is accepted, and encrypted again with `SECRET_KEY`.',
  ),
  ALLOW_PRIVATE_URLS: flag(
    'When true, webhooks of alerts may go to any address, keys of issuers of tokens come from any, and users who are limited to domains make services on any: this machine, its networks, the metadata of a cloud.',
  ),
  REDACT_SECRETS: flag('When true, the API shows `***` instead of the secrets in service configs.'),
  SANDBOX: oneOf(
    SANDBOX_MODES,
    'auto',
    'What confines handlers and compilers: `auto` takes the best level that works, and does not start where there is none and it is not root; `required` does not start without Landlock at least, `landlock` takes that level, `off` leaves resource limits, and as root separate users.',
  ),
} as const;

export const PERIODIC_WORK = {
  PERIODIC_WORK_PERCENT: integer(
    100,
    10,
    100,
    'Interval of periodic work, in percent of the default: recovery of what was lost, alerts, schedules that are due, retention of logs, audit and figures, orders of certificates, encryption with a new key, reports of figures. With less, processes notice sooner, and use more of the processors and of PostgreSQL. Heartbeats, timeouts and the hourly clean-up of artifacts stay as they are.',
  ),
} as const;

export const SIGN_IN = {
  OIDC_ISSUER: webAddress(
    'The provider whose people may sign in, as its discovery names it. Without it they sign in with passwords only. docs/ACCESS.md has the steps.',
    'https://login.example',
  ),
  OIDC_CLIENT_ID: text('none', 'The id that the provider has given to this installation.'),
  OIDC_CLIENT_SECRET: text('none', 'The secret of the client; a public client has none.'),
  OIDC_SCOPES: textWithDefault(
    'openid email profile',
    'What is asked for, separated by spaces; `openid` and `email` are needed, and what the provider needs to tell OIDC_ROLE_CLAIM.',
  ),
  OIDC_ROLE_CLAIM: textWithDefault(
    'roles',
    'The claim that says who may do what, a text or a list of them: its name, or the path to it, such as `realm_access.roles`.',
  ),
  OIDC_ROLES: jsonObject(
    'What values of this claim mean, in JSON: `{"operators": "admin", "team-a": {"role": "editor", "domains": ["a.example"]}}`. Who has none of them does not get in.',
  ),
  OIDC_ALLOW_HTTP: flag(
    'When true, the provider and PUBLIC_URL may be reached without TLS on other machines than this one.',
  ),
} as const;
