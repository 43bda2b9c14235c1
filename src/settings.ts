/**
 * Every environment variable the product reads: default, description and validation. `npm run docs` writes the tables
 * of docs/CONFIGURATION.md from here; `config.ts` reads the environment.
 */
import { availableParallelism, totalmem } from 'node:os';

import {
  emailAddress,
  flag,
  integer,
  jsonObject,
  networks,
  oneOf,
  optionalInteger,
  pairs,
  ratio,
  type Setting,
  text,
  textWithDefault,
  tlsAddress,
  webAddress,
} from './setting.js';

export type { Setting };
/** Values of `SANDBOX`. */
export const SANDBOX_MODES = ['auto', 'required', 'landlock', 'off'] as const;
const ACME_CHALLENGES = ['http-01', 'tls-alpn-01'] as const;
const HANDLER_NETWORKS = ['none', 'host'] as const;
const SAMPLERS = [
  ...(['always_on', 'always_off', 'traceidratio'] as const),
  ...(['parentbased_always_on', 'parentbased_always_off', 'parentbased_traceidratio'] as const),
] as const;
const LOG_LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] as const;

/** By the headings of the documentation. */
export const SETTING_GROUPS = {
  'Connections and files': {
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
  },
  'Artifact store': {
    ARTIFACTS_URL: text(
      '`DATA_DIR/artifacts`',
      'Where compiled handlers are stored: a folder, or `s3://bucket/prefix` for several machines. Each database needs its own: artifacts that no endpoint, no apply and no build of the last month refers to are deleted.',
    ),
    S3_ENDPOINT: text('AWS', 'URL of the S3 server behind an `s3://` `ARTIFACTS_URL`.'),
    S3_REGION: textWithDefault('us-east-1', 'Region of the artifact bucket.'),
    S3_ACCESS_KEY: text('none', 'Access key of the artifact bucket.'),
    S3_SECRET_KEY: text('none', 'Secret key of the artifact bucket.'),
  },
  'Access and confinement': {
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
  },
  'Sign-in with OpenID Connect': {
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
  },
  Compiling: {
    // One more than there are cores: while one compiler waits for its files or its linker, another has work.
    WORKER_CONCURRENCY: integer(
      availableParallelism() + 1,
      1,
      256,
      'Compilers that one worker process runs concurrently.',
      'cores + 1',
    ),
    COMPILE_TIMEOUT_MS: integer(120_000, 100, 3_600_000, 'Time limit of one compiler run, milliseconds.'),
    COMPILE_MEMORY_MB: integer(4096, 256, 1_048_576, 'Address space of one compiler process, MiB.'),
    COMPILE_TOTAL_MEMORY_MB: integer(
      Math.floor(totalmem() / 2 / 1024 / 1024),
      256,
      1_048_576,
      'Memory of all processes of one build together, MiB. Checked periodically; a build over it is killed.',
      'half of the machine',
    ),
    COMPILE_CPU_SECONDS: integer(600, 1, 86_400, 'CPU time of one compiler process, seconds.'),
    COMPILE_DISK_MB: integer(
      4096,
      16,
      1_048_576,
      'Disk space of one build, MiB. Checked periodically; a build over it is killed.',
    ),
    COMPILE_PROCESSES: integer(
      1024,
      16,
      1_048_576,
      'Processes and threads of one build. In force with namespaces, and when started by root.',
    ),
    COMPILE_WAIT_MS: integer(
      180_000,
      1,
      3_600_000,
      'How long a compile request waits for its build before it answers 504, milliseconds.',
    ),
  },
  Handlers: {
    VERSIONS_KEPT: integer(
      100,
      20,
      10_000,
      'Newest versions of each endpoint that are kept; older ones are, too, while they are deployed.',
    ),
    DEPLOYMENTS_KEPT: integer(
      200,
      1,
      100_000,
      'Newest deployments of each endpoint that are kept; and the last one of each version.',
    ),
    JOBS_QUEUED_LIMIT: integer(
      10_000,
      1,
      10_000_000,
      'Queued requests of one endpoint that have not ended. More are refused.',
    ),
    LOG_RETENTION_DAYS: integer(7, 1, 3_650, 'How long entries of the log are kept, days.'),
    LOG_RETENTION_MB: integer(
      1_024,
      16,
      10_000_000,
      'What entries of the log may take in PostgreSQL, MiB: the oldest hours are dropped beyond it. The newest hour stays.',
    ),
    LOG_REQUESTS_PER_SECOND: integer(
      100,
      0,
      1_000_000,
      'Entries of the log for requests of one endpoint on one gateway, each second, and as many for those that a policy only reports. Requests that fail (5xx) always have one.',
    ),
    JOBS_KEPT_HOURS: integer(168, 1, 87_600, 'How long queued requests are kept after their end, hours.'),
    START_TIMEOUT_MS: integer(
      10_000,
      100,
      600_000,
      'Time for a handler to become ready, and for a start or stop to be observed on all gateways, milliseconds.',
    ),
    REQUEST_TIMEOUT_MS: integer(
      30_000,
      1,
      3_600_000,
      'Deadline of one request in a handler, milliseconds. An endpoint can set a lower value for this and the next seven in its `limits`.',
    ),
    STREAM_IDLE_TIMEOUT_MS: integer(
      60_000,
      1,
      3_600_000,
      'Longest time between two pieces of a streamed response, milliseconds. Beyond it, the response is cut off.',
    ),
    HANDLER_MEMORY_MB: integer(1024, 64, 1_048_576, 'Memory of all processes of one handler, MiB.'),
    HANDLER_PROCESSES: integer(
      512,
      16,
      1_000_000,
      'Processes and threads of one handler. In force with namespaces, and when started by root.',
    ),
    HANDLER_OPEN_FILES: integer(1024, 32, 1_048_576, 'Open files and connections of one handler process.'),
    HANDLER_CPU_PERCENT: optionalInteger(
      1,
      102_400,
      'CPU time of one handler, percent of one core, averaged over ten seconds. A handler over it is killed.',
    ),
    HANDLER_CONCURRENT_REQUESTS: integer(
      4096,
      1,
      65_536,
      'Concurrent requests in one handler, for the gateway as a whole. More get 429.',
    ),
    HANDLER_IDLE_MS: integer(
      900_000,
      0,
      604_800_000,
      'Time without requests after which a handler is ended, milliseconds; the next request starts it again. 0: never, which for the `limits` of an endpoint counts as the highest value.',
    ),
    HANDLER_NETWORK: oneOf(
      HANDLER_NETWORKS,
      'none',
      'What handlers in a sandbox can connect to: `none` allows only services bound to them, those of the type `http` included, `host` everything this machine can reach.',
    ),
    STREAM_DRAIN_MS: integer(
      10_000,
      0,
      30_000,
      'How long a streamed response or a WebSocket may go on when its handler is replaced or stopped, or the gateway stops, milliseconds. Then it is cut off, or closed with 1012.',
    ),
    HANDLER_THREADS: integer(64, 1, 4096, 'Requests that one handler process handles concurrently.'),
  },
  Services: {
    SERVICE_TIMEOUT_MS: integer(
      10_000,
      1,
      3_600_000,
      'Deadline of a service call for which the handler sets none, milliseconds.',
    ),
    SERVICE_QUEUE_LIMIT: integer(
      1_000,
      0,
      1_000_000,
      'Calls that may wait for a free connection of one service. More are refused.',
    ),
    SERVICE_MEMORY_MB: integer(
      512,
      64,
      1_048_576,
      'Memory of the process of a service, MiB, besides what its program needs for itself; with more, it is ended. Half of it is for payloads of calls and unread answers: more calls are refused. That of a sqlite service always has 1024.',
    ),
    SERVICE_ANSWER_MB: integer(
      64,
      1,
      1_024,
      'Size of one message of a backend (postgres, mysql, mongodb, redis, memcached), or of one file or list that a handler gets (ftp, objstore), MiB; at most half of SERVICE_MEMORY_MB; 2.5 times as much for postgres, which sends bytes as text. Larger ones are refused before they are received.',
    ),
    SQLITE_DIR: text('none', 'When set, the files of sqlite services must be in this folder.'),
    ACTOR_HOST_PORT: optionalInteger(
      1,
      65535,
      'When set, the actor host also serves the management API of other machines on this port of `HOST`.',
    ),
    UPLOAD_LIMIT_BYTES: integer(
      5 * 1024 ** 3,
      1,
      Number.MAX_SAFE_INTEGER,
      'Largest file for an upload to an object storage, bytes.',
      '5 GiB',
    ),
  },
  Imports: {
    SPEC_LIMIT_BYTES: integer(
      32 * 1024 * 1024,
      1024,
      268_435_456,
      'Largest OpenAPI document that can be imported, bytes.',
      '32 MiB',
    ),
    BUNDLE_LIMIT_BYTES: integer(
      64 * 1024 * 1024,
      1024,
      4_294_967_295,
      'Largest ZIP bundle that can be imported, bytes.',
      '64 MiB',
    ),
    BUNDLE_UNPACKED_LIMIT_BYTES: integer(
      256 * 1024 * 1024,
      1024,
      4_294_967_295,
      'Largest uncompressed size of a bundle, bytes.',
      '256 MiB',
    ),
    BUNDLE_ENTRIES_LIMIT: integer(10_000, 1, 65_535, 'Most files and folders in a bundle.'),
    IMPORT_OPERATIONS_LIMIT: integer(5_000, 1, 100_000, 'Most operations in one import.'),
    IMPORT_READ_TIMEOUT_MS: integer(
      30_000,
      100,
      3_600_000,
      'Time limit for reading one document or bundle, milliseconds.',
    ),
    IMPORT_READ_MEMORY_MB: integer(
      1024,
      64,
      1_048_576,
      'Heap of the process that reads one document or bundle, MiB.',
    ),
    IMPORT_WAIT_MS: integer(
      600_000,
      1,
      3_600_000,
      'How long an import request waits until its handlers are compiled and started before it answers 504, milliseconds.',
    ),
  },
  Applies: {
    APPLY_WAIT_MS: integer(
      600_000,
      1,
      3_600_000,
      'How long a request waits for its apply before it answers 202, while the apply goes on, milliseconds.',
    ),
    APPLIES_KEPT_DAYS: integer(
      90,
      1,
      36_500,
      'How long applies are kept after they have ended, with what their way back needs, days.',
    ),
  },
  HTTP: {
    API_BODY_LIMIT_BYTES: integer(
      4 * 1024 * 1024,
      1024,
      67_108_864,
      'Largest JSON body the management API accepts, bytes.',
      '4 MiB',
    ),
    GATEWAY_BODY_LIMIT_BYTES: integer(
      10 * 1024 * 1024,
      0,
      67_108_864,
      'Largest request body the gateway passes to a handler, bytes.',
      '10 MiB',
    ),
    // For each core, so much that the largest answer can arrive and be sent.
    GATEWAY_MEMORY_MB: integer(
      256 * availableParallelism(),
      16,
      1_048_576,
      'Memory of the gateway as a whole for request bodies and unsent answers, MiB; at least twice GATEWAY_BODY_LIMIT_BYTES. More requests get 503.',
      '256 for each core',
    ),
    API_CONNECTIONS_LIMIT: integer(
      16_384,
      1,
      1_000_000,
      'Client connections of one process of the management API, at most 80 % of its file descriptors. More are refused.',
    ),
    GATEWAY_CONNECTIONS_LIMIT: integer(
      16_384,
      1,
      1_000_000,
      'Client connections of the gateway as a whole, at most 80 % of the file descriptors of its front. More are refused.',
    ),
    GATEWAY_CONCURRENCY: integer(
      availableParallelism(),
      1,
      256,
      'Threads of the front, the process of a gateway that serves its port.',
      'cores',
    ),
    TRUSTED_PROXIES: networks(
      'Comma-separated addresses and networks (`10.0.0.0/8`) of proxies in front of the gateway and the management API. For a request from one of them, the address of the client is the last one in `X-Forwarded-For`, or in `Forwarded` where that is missing, that is not one of them.',
    ),
    HTTP_HEAD_TIMEOUT_MS: integer(
      20_000,
      100,
      3_600_000,
      'Time limit for the head of a request on both servers, milliseconds.',
    ),
    HTTP_IDLE_TIMEOUT_MS: integer(
      75_000,
      100,
      3_600_000,
      'How long an idle connection stays open, milliseconds. Must be longer than the idle timeout of a load balancer in front.',
    ),
    HTTP_STALL_TIMEOUT_MS: integer(
      20_000,
      100,
      3_600_000,
      'How long a client may send a body, or receive an answer, below HTTP_MIN_BYTES_PER_SECOND before its connection is closed, milliseconds.',
    ),
    HTTP_MIN_BYTES_PER_SECOND: integer(
      1_024,
      1,
      1_073_741_824,
      'The slowest rate of a body or an answer, bytes a second on average over HTTP_STALL_TIMEOUT_MS.',
    ),
  },
  Traces: {
    OTEL_EXPORTER_OTLP_ENDPOINT: webAddress(
      'Where gateways send traces by OTLP over HTTP, in JSON, such as `http://localhost:4318`: `/v1/traces` below it. None are sent unless it is set.',
    ),
    OTEL_EXPORTER_OTLP_HEADERS: pairs(
      'Comma-separated headers that are sent with them, such as `authorization=Bearer%20key`.',
    ),
    OTEL_SERVICE_NAME: textWithDefault('edge-gateway', 'The name of the gateways in traces.'),
    OTEL_TRACES_SAMPLER: oneOf(
      SAMPLERS,
      'parentbased_always_on',
      'Which traces are sent: with `parentbased_` those that clients have sampled, and of requests without a trace those that the rest of the name says.',
    ),
    OTEL_TRACES_SAMPLER_ARG: ratio('For `traceidratio`: the part of the traces that is sent, from 0 to 1.'),
  },
} as const satisfies Record<string, Record<string, Setting<unknown>>>;

type Groups = typeof SETTING_GROUPS;
type Union<T> = (T extends unknown ? (value: T) => void : never) extends (value: infer U) => void ? U : never;

/** All settings by name. */
export const SETTINGS = Object.assign({}, ...Object.values(SETTING_GROUPS)) as Union<Groups[keyof Groups]>;
