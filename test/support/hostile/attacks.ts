/**
 * The attacks of untrusted code, and what becomes of each at each level that confines: one table. The tests take their
 * attacks from here, so that there is none without a level, and none at one level only.
 */
import type { ConfiningLevel } from '../../../src/sandbox/probe.js';

/** The levels that confine. */
export const CONFINING = ['namespaces', 'landlock'] as const satisfies readonly ConfiningLevel[];

/** What becomes of an attack: in words, where its test says it in code, or what has to be said. */
type Outcome = string | RegExp;
interface Attack extends Readonly<Record<ConfiningLevel, Outcome>> {
  /** What it tries. */
  readonly tries: string;
}
type Table = Readonly<Record<string, Attack>>;

const same = <const O extends Outcome>(tries: string, outcome: O) => ({
  tries,
  namespaces: outcome,
  landlock: outcome,
});
const differs = <const O extends Outcome>(tries: string, outcomes: Readonly<Record<ConfiningLevel, O>>) => ({
  tries,
  ...outcomes,
});

const ABORTED = /SIG(SEGV|ABRT), as by abort/;
const TOO_MUCH_MEMORY = /it used \d+ MiB .* may use 128/;
const TOO_MANY_FILES = /its files took more than 64 MiB/;
const OTHER_RESPONSE = /sent a response to no request, or a second one/;

/** By handlers, as a root service's and as another user's, on files, processes and sockets of the machine. */
export const ISOLATION = {
  'reads no file but its own': differs('files of the product, the machine, other handlers and processes', {
    namespaces: 'there are /usr, its executable and what is made for it',
    landlock: 'there are /usr, its folder and what is its own of /proc/self',
  }),
  'inherits no file that was open when the gateway was started': same(
    'a file that the gateway was started with',
    'it is open in no process of the product',
  ),
  'writes to nothing but its own folder': differs('files, folders, devices, settings of the kernel', {
    namespaces: 'its /tmp in memory',
    landlock: 'its TMPDIR, a folder of 64 MiB',
  }),
  'cannot write to a disk of this machine, not even through an open file': differs(
    'what is open or mounted',
    {
      namespaces: 'nothing is open for writing, or mounted for it but /tmp in memory',
      landlock: 'nothing is open for writing',
    },
  ),
  'sees no process, environment or memory of others, and cannot signal or trace any': same(
    '/proc, kill, ptrace, setuid, mount',
    'no process is seen, none is hit, and nothing is permitted',
  ),
  'connects to nothing but the actor host': differs('TCP, sockets of the product, abstract ones, names', {
    namespaces: 'the socket of services',
    landlock: 'the same; not as root, also sockets of its user, which answer nobody without a token',
  }),
  'finds the socket of a restarted actor host': same(
    'the socket of services, after that',
    'it can be reached again',
  ),
} satisfies Table;

/** By a handler that was given the network of the machine (`HANDLER_NETWORK=host`). */
export const HOST_NETWORK = {
  'is the network of the machine, without more files or processes': same(
    'TCP, files, processes, with HANDLER_NETWORK=host',
    'TCP, and the files that the network takes',
  ),
} satisfies Table;

/** By handlers, on time, memory, processes, files and the log. */
export const RESOURCES = {
  'an endless loop exceeds its deadline, and the process is replaced': same('a loop in a request', '504'),
  '64 endless loops at once': same('a loop in each request', '504 for each'),
  'loops beside its requests, in a thread and in sessions of their own': same(
    'loops that outlast requests',
    'it and its neighbour answer on',
  ),
  'more than its share of a core, for ten seconds': same(
    'loops, with cpu_percent',
    /^it used \d+ % of a core for 10 s, and may use 20 %/,
  ),
  'an endless loop before it is ready': same('a loop in main()', /not ready within 3000 ms/),
  'an endless recursion': same('its stack', /SIG(SEGV|ABRT).*exhausted stack/),
  'allocating a gigabyte at once fails': same('one allocation', ABORTED),
  'a gigabyte, little by little': same('64 allocations', /MiB of memory, and may use 128|abort/),
  'a gigabyte, in many processes': same('memory of its children', TOO_MUCH_MEMORY),
  'memory of a process whose first thread has ended': same(
    'memory that /proc ascribes to none',
    TOO_MUCH_MEMORY,
  ),
  'a gigabyte in files': differs('a full folder', {
    // MiB that it could write.
    namespaces: /^(?:[1-9]|[1-5]\d|6[0-4])$/,
    landlock: TOO_MANY_FILES,
  }),
  'files in memory without a name': same('memfd_create', /Operation not permitted|not implemented/),
  'a fork bomb': same('fork() in each of its processes', '504'),
  '10,000 threads': same('threads without end', 'at most 64'),
  '100,000 open files': same('open files without end', 'at most 64'),
  'a million empty files': differs('names without content', {
    namespaces: /it used \d+ MiB of memory, and may use 128/,
    landlock: TOO_MANY_FILES,
  }),
  'lines without end': same('printing', /prints more than 500 lines a second; the rest is not logged/),
  'a line without end': same('printing without a line end', 'it is slowed down'),
  'a response of a gigabyte over its memory limit': same('an answer', ABORTED),
  'a response of a gigabyte within its memory limit is a 500, because it exceeds the limit of responses':
    same('an answer, with 3 GiB of memory', '500'),
  'panics fail their requests alone': same('panic!, in a thread too', '500 for that request'),
  'a panic while panicking': same('panic! in drop()', ABORTED),
  'exit(0)': same('exit in a request', /exit code 0/),
  'abort()': same('abort in a request', ABORTED),
  'repeated crashes set it to error, with the reason': same(
    'crashes again and again',
    /crashed: .*abort[\s\S]*memory allocation of/,
  ),
  'panics at its start': same('panic! in main()', /exit code 101[\s\S]*not today/),
} satisfies Table;

/** By handlers that speak frames themselves, on the front. */
export const PROTOCOL = {
  'answers that HTTP does not allow are a 502, and fail nothing else': same('statuses, headers, JSON', '502'),
  'headers about the framing are dropped': same(
    'Content-Length, Transfer-Encoding',
    'the front sets its own',
  ),
  'line ends in headers are rejected, with the SDK': same('headers that end the head', '500 or 502'),
  'twice: it is ended and started again': same('two responses to a request', OTHER_RESPONSE),
  'unasked: it is ended and started again': same('a response to no request', OTHER_RESPONSE),
  'unasked-part: it is ended and started again': same('a part of a response to no request', OTHER_RESPONSE),
  'flood: it is ended and started again': same('responses without end', OTHER_RESPONSE),
  'request: it is ended and started again': same('a request to the front', /sent what only a gateway sends/),
  'garbage: it is ended and started again': same('no frame', /Unknown protocol version 165/),
  'huge: it is ended and started again': same(
    'a body of 1 GiB, announced',
    /Body length 1073741824 is over the limit/,
  ),
  '4-gigabytes: it is ended and started again': same(
    'a head of 4 GiB, announced',
    /Head length 4294967295 is over the limit/,
  ),
  'close: it is ended and started again': same('a closed connection', /closed its connection to the gateway/),
  'close-all: it is ended and started again': same('all of them, and its end', /exit code 4/),
  'a head over the size limit': same('a large head', '502'),
  'unfinished: its request exceeds its deadline': same('half a response', '504'),
  'stop-reading: its request exceeds its deadline': same('a request that it does not read', '504'),
  'byte by byte is slow, and has no other effect': same('a response of single bytes', '200'),
  'output on its control stream is not read': same(
    'writing where the gateway writes',
    'it is stopped at 2 MiB',
  ),
  'a handler that removes its socket is used until its connections close': same('no socket', '200'),
  'goes to error when, where its socket should be, there is nothing': same(
    'ready without a socket',
    /it cannot be reached: No such file/,
  ),
  'goes to error when, where its socket should be, is a file': same('a file', /its socket is not a socket/),
  'goes to error when, where its socket should be, is a link to a socket of another process': same(
    'leading the gateway elsewhere',
    /its socket is not a socket/,
  ),
  'goes to error when, where its socket should be, is a socket without a listener': same(
    'ready without listening',
    /it cannot be reached: /,
  ),
} satisfies Table;

/** By sources, on the machine that compiles them. */
export const SOURCES = {
  'read no file of this machine': same('include_str!, include_bytes!', /couldn't read/),
  'read no source of a handler that is compiled at the same time': same('include_str!', /couldn't read/),
  'read no environment but their own, which has no secrets': differs('/proc, option_env!', {
    namespaces: 'the compiler has none, and knows no folder of the machine',
    landlock: 'the compiler has none; others cannot even be named',
  }),
  'end when they read a pipe of the compiler, which waits for itself': same(
    'include_str! of /proc/self/fd',
    /waited for something that did not come/,
  ),
  'include no file in other ways': same('#[path], global_asm!, #[link], env!', 'each is refused'),
  'end at a limit when they recurse, or compute, without end': same('macros, types, constants', 'an error'),
  'end at a limit when they are large': same('100,000 functions, 10 MB', 'compiled, or an error'),
  'are refused when a bundle brings 10 MB of them': same(
    'a bundle',
    /handlers\/large\.rs has \d+ bytes; at most 4194304 .*API_BODY_LIMIT_BYTES/,
  ),
  'are rejected with a storable message when they make the compiler print invalid text': same(
    'NUL, 3 MB of text',
    'an error, shortened',
  ),
} satisfies Table;

/** By crates, whose build scripts and macros are programs, on the machine that builds them. */
export const CRATES = {
  'reach nothing from a build script': same('files, sockets, processes, names', 'each is refused'),
  'leave no process, and nothing that affects later builds': same('daemons, files for cargo', 'none is left'),
  'reach nothing from a macro': same('files, sockets, processes, names', 'each is refused'),
  'do not replace the executable by another file': same('links, pipes, holes, folders', /no executable/),
  'leave no process from a macro, and do not mislead the parser of the output': same(
    'daemons, forged messages',
    'none is left, and the message is text',
  ),
  'end when they have too many processes': same(
    'processes without end',
    /forked 1?\d\d times, then: Resource temporarily unavailable/,
  ),
  'end when they write too much': same(
    'files without end',
    /wrote more than 256 MiB and was stopped \(COMPILE_DISK_MB\)/,
  ),
  'end when they use too much memory': same(
    'memory in eight processes',
    /used more than 1024 MiB of memory together.*COMPILE_TOTAL_MEMORY_MB/,
  ),
  'end when they print without end': same('printing', /COMPILE_TOTAL_MEMORY_MB|memory allocation/),
  'leave folders that can be removed': same(
    'a full disk, 3000 folders deep, without rights',
    /full: (No space left on device|Permission denied).*; deep enough/,
  ),
  'end when they take too long': same('sleeping', /did not end within 20 s.*COMPILE_TIMEOUT_MS/),
} satisfies Table;

/**
 * Why tests that `docs/PROMISES.md` names for attacks run at one level: what they attack decides without looking at
 * what confines the program. By the names of their links there.
 */
export const WITHOUT_LEVEL: Readonly<Record<string, string>> = {
  hostile: 'a benchmark; what is attacked and how is in the tests of resources and of the protocol',
  'large-streams': 'the gateway does not look at the memory, and gives little of it',
  'handler-output': 'the gateway reads a pipe, whoever writes to it',
  limits: 'the front and the gateway count requests and bodies',
  'import-again': 'the API keeps what an endpoint is allowed',
  sleep: 'the gateway chooses which handlers to end',
  'memory-pressure': 'the gateway chooses which handlers to end',
  'http-driver': 'the actor host looks at what a handler asks for',
  'service-callers': 'the actor host reads a socket, which every handler has at both levels',
  'service-tokens':
    'the actor host compares the token and the user of who connects, which are the same at both levels',
  'service-token': 'the actor host verifies a signature',
  'isolated-services': 'the process of a service verifies a signature',
  'service-connections': 'the actor host counts connections',
  'sqlite-limits': 'the process of the service limits what it does for a call',
  'sqlite-process': 'the process of the service limits what it does for a call',
  sqlite: 'the process of the service limits what it does for a call',
  redis: 'the process of the service looks at the commands',
};

/** Declares the test of an attack of a table; what is to become of it is handed to the test. */
export type DeclareAttack<T extends Table> = <K extends keyof T & string>(
  attack: K,
  test: (outcome: T[K][ConfiningLevel]) => Promise<void>,
) => Mocha.Test;

/**
 * The tests of a table, at each level. `it` takes attacks of the table only, and each of them has to be tried.
 * @param title followed by the level
 */
export function describeAttacks<T extends Table>(
  title: string,
  table: T,
  declare: (level: ConfiningLevel, it: DeclareAttack<T>) => void,
): void {
  for (const level of CONFINING)
    describe(`${title}, at the level ${level}`, () => {
      const untried = new Set(Object.keys(table));
      declare(level, (attack, test) => {
        if (!untried.delete(attack)) throw new Error(`"${attack}" is tried twice`);
        return it(attack, () => test((table[attack] as T[typeof attack])[level]));
      });
      if (untried.size > 0) throw new Error(`${title}, ${level}: not tried: ${[...untried].join('; ')}`);
    });
}
