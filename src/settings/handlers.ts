/** How handlers are compiled and run, and how they reach services. */
import { availableParallelism, totalmem } from 'node:os';
import { hostSecrets, integer, oneOf, optionalInteger, text, webHosts } from './setting.js';

const HANDLER_NETWORKS = ['none', 'host'] as const;

export const COMPILING = {
  // One more than there are cores: while one compiler waits for its files or its linker, another has work.
  WORKER_CONCURRENCY: integer(
    availableParallelism() + 1,
    1,
    256,
    'Compilers that one worker process runs concurrently.',
    'cores + 1',
  ),
  COMPILE_TIMEOUT_MS: integer(120_000, 100, 3_600_000, 'Time limit of one compiler run, milliseconds.'),
  CRATES_TIMEOUT_MS: integer(
    900_000,
    100,
    86_400_000,
    'Processor time that crates may take until one more of them is built, and time for their download, milliseconds.',
  ),
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
  CARGO_SOURCES: webHosts(
    'Hosts of git repositories and registries that crates may come from besides crates.io, comma-separated: `git.example.com`, `git.example.com:8443`, or `http://` and a host that has no TLS.',
  ),
  CARGO_CREDENTIALS: hostSecrets(
    'How git servers and registries let cargo in, comma-separated, each with the name of a secret of the installation: `git.example.com=GIT_TOKEN`, with a token or `user:password`; `sparse+https://crates.example.com/=CRATES_TOKEN`, the index with the token of the registry.',
  ),
  COMPILE_WAIT_MS: integer(
    180_000,
    1,
    3_600_000,
    'How long a compile request waits for its build before it answers 504, milliseconds.',
  ),
} as const;

export const HANDLERS = {
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
  BUILDS_QUEUED_LIMIT: integer(
    200,
    1,
    1_000_000,
    'Builds of one domain, or of all hosts without one, asked for one by one, that have not ended. More are refused; imports and applies wait instead.',
  ),
  JOBS_QUEUED_LIMIT: integer(
    10_000,
    1,
    10_000_000,
    'Queued requests of one endpoint that have not ended. More are refused.',
  ),
  JOBS_QUEUED_MB: integer(
    512,
    1,
    10_000_000,
    'What the queued requests of one domain, or of all hosts without one, that have not ended, and its schedules, take, MiB: each 8 KiB beside what is sent. More are refused.',
  ),
  LOG_RETENTION_DAYS: integer(7, 1, 3_650, 'How long entries of the log are kept, days.'),
  LOG_RETENTION_MB: integer(
    1_024,
    16,
    10_000_000,
    'What entries of the log may take in PostgreSQL, MiB: beyond it, the oldest entries of those go who have more than their share. The newest hour stays.',
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
} as const;

export const SERVICES = {
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
  SQLITE_DIR: text(
    '`DATA_DIR/sqlite`',
    'The folders in which files of sqlite services may be, comma-separated. Paths of services are relative to the first.',
  ),
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
  UPLOADS_OF_USER_LIMIT: integer(
    32,
    1,
    10_000,
    'Uploads of one user, or of `API_KEY`, to object storages at a time. More are refused.',
  ),
  UPLOADS_SPOOLED_LIMIT_BYTES: integer(
    20 * 1024 ** 3,
    1024,
    Number.MAX_SAFE_INTEGER,
    'What uploads to object storages may have on the disk of one `web` until they are stored, bytes; several ones of one user half of it. One of each user is let in beyond it.',
    '20 GiB',
  ),
} as const;
