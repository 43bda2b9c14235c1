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
  'a handler reads no file but its own': differs(
    'files of the product, the machine, other handlers and processes',
    {
      namespaces: 'there are /usr, its executable and what is made for it',
      landlock: 'there are /usr, its folder and what is its own of /proc/self',
    },
  ),
  'a handler inherits no file that was open when the gateway was started': same(
    'a file that the gateway was started with',
    'it is open in no process of the product',
  ),
  'a handler writes to nothing but its own folder': differs(
    'files, folders, devices, settings of the kernel',
    {
      namespaces: 'its /tmp in memory',
      landlock: 'its TMPDIR, a folder of 64 MiB',
    },
  ),
  'a handler cannot write to a disk of this machine, not even through an open file': differs(
    'what is open or mounted',
    {
      namespaces: 'nothing is open for writing, or mounted for it but /tmp in memory',
      landlock: 'nothing is open for writing',
    },
  ),
  'a handler sees no process, environment or memory of others, and cannot signal or trace any': same(
    '/proc, kill, ptrace, setuid, mount',
    'no process is seen, none is hit, and nothing is permitted',
  ),
  'a handler connects to nothing but the actor host': differs(
    'TCP, sockets of the product, abstract ones, names',
    {
      namespaces: 'the socket of services',
      landlock: 'the same; not as root, also sockets of its user, which answer nobody without a token',
    },
  ),
  'a handler finds the socket of a restarted actor host': same(
    'the socket of services, after that',
    'it can be reached again',
  ),
} satisfies Table;

/** By a handler that was given the network of the machine (`HANDLER_NETWORK=host`). */
export const HOST_NETWORK = {
  'HANDLER_NETWORK=host gives a handler the network of the machine, and only the files for it': same(
    'TCP, files, processes, with HANDLER_NETWORK=host',
    'TCP, and the files that the network takes',
  ),
} satisfies Table;

/** By handlers, on time, memory, processes, files and the log. */
export const RESOURCES = {
  'an endless loop in a request exceeds its deadline, and the process of the handler is replaced': same(
    'a loop in a request',
    '504',
  ),
  'a handler answers 504 to 64 requests with endless loops at once, and serves again': same(
    'a loop in each request',
    '504 for each',
  ),
  'a handler that loops beside its requests, in a thread and in other sessions, serves on': same(
    'loops that outlast requests',
    'it and its neighbour answer on',
  ),
  'restarts a handler that uses more than its share of a core for ten seconds': same(
    'loops, with cpu_percent',
    /^it used \d+ % of a core for 10 s, and may use 20 %/,
  ),
  'fails the start of a handler that loops without end before it is ready': same(
    'a loop in main()',
    /not ready within 3000 ms/,
  ),
  'restarts a handler that recurses without end': same('its stack', /SIG(SEGV|ABRT).*exhausted stack/),
  'restarts a handler that allocates a gigabyte at once': same('one allocation', ABORTED),
  'restarts a handler that allocates a gigabyte little by little': same(
    '64 allocations',
    /MiB of memory, and may use 128|abort/,
  ),
  'restarts a handler that allocates a gigabyte in many processes': same(
    'memory of its children',
    TOO_MUCH_MEMORY,
  ),
  'restarts a handler with too much memory of a process whose first thread has ended': same(
    'memory that /proc ascribes to none',
    TOO_MUCH_MEMORY,
  ),
  'limits a handler that writes a gigabyte into files to 64 MiB': differs('a full folder', {
    // MiB that it could write.
    namespaces: /^(?:[1-9]|[1-5]\d|6[0-4])$/,
    landlock: TOO_MANY_FILES,
  }),
  'refuses a handler files in memory without a name': same(
    'memfd_create',
    /Operation not permitted|not implemented/,
  ),
  'a handler answers 504 to a request with a fork bomb, and serves again': same(
    'fork() in each of its processes',
    '504',
  ),
  'a handler that starts 10,000 threads gets no more than its limit': same(
    'threads without end',
    'at most 64',
  ),
  'a handler that opens 100,000 files gets no more than its limit': same(
    'open files without end',
    'at most 64',
  ),
  'restarts a handler that creates a million empty files': differs('names without content', {
    namespaces: /it used \d+ MiB of memory, and may use 128/,
    landlock: TOO_MANY_FILES,
  }),
  'a handler that prints lines without end serves on, and the log says what is left out': same(
    'printing',
    /prints more than 500 lines a second; the rest is not logged/,
  ),
  'a handler that prints a line without end serves on, and none of it is logged': same(
    'printing without a line end',
    'it is slowed down',
  ),
  'restarts a handler whose response of a gigabyte is over its memory limit': same('an answer', ABORTED),
  'a response of a gigabyte within the memory limit of its handler is a 500': same(
    'an answer, with 3 GiB of memory',
    '500',
  ),
  'panics of a handler fail their requests alone': same('panic!, in a thread too', '500 for that request'),
  'restarts a handler that panics while panicking': same('panic! in drop()', ABORTED),
  'restarts a handler that calls exit(0) in a request': same('exit in a request', /exit code 0/),
  'restarts a handler that calls abort() in a request': same('abort in a request', ABORTED),
  'repeated crashes set an endpoint to error, with the reason': same(
    'crashes again and again',
    /crashed: .*abort[\s\S]*memory allocation of/,
  ),
  'fails the start of a handler that panics at its start, with the reason': same(
    'panic! in main()',
    /exit code 101[\s\S]*not today/,
  ),
} satisfies Table;

/** By handlers that speak frames themselves, on the front. */
export const PROTOCOL = {
  'answers of a handler that HTTP does not allow are a 502, and fail nothing else': same(
    'statuses, headers, JSON',
    '502',
  ),
  'drops headers about the framing from an answer of a handler': same(
    'Content-Length, Transfer-Encoding',
    'the front sets its own',
  ),
  'rejects line ends in headers that a handler sets with the SDK': same(
    'headers that end the head',
    '500 or 502',
  ),
  'restarts a handler that violates the protocol: twice': same('two responses to a request', OTHER_RESPONSE),
  'restarts a handler that violates the protocol: unasked': same('a response to no request', OTHER_RESPONSE),
  'restarts a handler that violates the protocol: unasked-part': same(
    'a part of a response to no request',
    OTHER_RESPONSE,
  ),
  'restarts a handler that violates the protocol: flood': same('responses without end', OTHER_RESPONSE),
  'restarts a handler that violates the protocol: request': same(
    'a request to the front',
    /sent what only a gateway sends/,
  ),
  'restarts a handler that violates the protocol: garbage': same('no frame', /Unknown protocol version 165/),
  'restarts a handler that violates the protocol: huge': same(
    'a body of 1 GiB, announced',
    /Body length 1073741824 is over the limit/,
  ),
  'restarts a handler that violates the protocol: 4-gigabytes': same(
    'a head of 4 GiB, announced',
    /Head length 4294967295 is over the limit/,
  ),
  'restarts a handler that violates the protocol: close': same(
    'a closed connection',
    /closed its connection to the gateway/,
  ),
  'restarts a handler that violates the protocol: close-all': same('all of them, and its end', /exit code 4/),
  'answers 502 when the head of a response is over the size limit': same('a large head', '502'),
  'answers 504 when a handler violates the protocol: unfinished': same('half a response', '504'),
  'answers 504 when a handler violates the protocol: stop-reading': same(
    'a request that it does not read',
    '504',
  ),
  'delivers a response that a handler sends byte by byte': same('a response of single bytes', '200'),
  'a gateway does not read output on the control stream of a handler': same(
    'writing where the gateway writes',
    'it is stopped at 2 MiB',
  ),
  'a handler that removes its socket serves on': same('no socket', '200'),
  'sets an endpoint to error when the socket of its handler does not exist': same(
    'ready without a socket',
    /it cannot be reached: No such file/,
  ),
  'sets an endpoint to error when the socket of its handler is a file': same(
    'a file',
    /its socket is not a socket/,
  ),
  'sets an endpoint to error when the socket of its handler is a link to a socket of another process': same(
    'leading the gateway elsewhere',
    /its socket is not a socket/,
  ),
  'sets an endpoint to error when the socket of its handler is a socket without a listener': same(
    'ready without listening',
    /it cannot be reached: /,
  ),
} satisfies Table;

/** By sources, on the machine that compiles them. */
export const SOURCES = {
  'a hostile source reads no file of the machine': same('include_str!, include_bytes!', /couldn't read/),
  'a hostile source reads no source of a handler that is compiled at the same time': same(
    'include_str!',
    /couldn't read/,
  ),
  'a hostile source reads no environment but its own, which has no secrets': differs('/proc, option_env!', {
    namespaces: 'the compiler has none, and knows no folder of the machine',
    landlock: 'the compiler has none; others cannot even be named',
  }),
  'ends a compile whose source makes the compiler wait for its own pipe': same(
    'include_str! of /proc/self/fd',
    /waited for something that did not come/,
  ),
  'a hostile source includes no file by attributes, assembly or links': same(
    '#[path], global_asm!, #[link], env!',
    'each is refused',
  ),
  'ends a compile at a limit when its source recurses, or computes, without end': same(
    'macros, types, constants',
    'an error',
  ),
  'refuses a source of 10 MB, and compiles one of 100,000 functions or ends at its limit': same(
    '100,000 functions, 10 MB',
    'compiled, or an error',
  ),
  'refuses a bundle with a source of 10 MB': same(
    'a bundle',
    /handlers\/large\.rs has \d+ bytes; at most 4194304 .*API_BODY_LIMIT_BYTES/,
  ),
  'refuses, with a storable message, a source that makes the compiler print invalid text': same(
    'NUL, 3 MB of text',
    'an error, shortened',
  ),
} satisfies Table;

/** By crates, whose build scripts and macros are programs, on the machine that builds them. */
export const CRATES = {
  'a hostile crate reaches nothing from its build script': same(
    'files, sockets, processes, names',
    'each is refused',
  ),
  'a hostile crate leaves no process, and nothing that affects later builds': same(
    'daemons, files for cargo',
    'none is left',
  ),
  'a hostile crate reaches nothing from a macro': same('files, sockets, processes, names', 'each is refused'),
  'a hostile crate does not replace the executable of a handler by another file': same(
    'links, pipes, holes, folders',
    /no executable/,
  ),
  'a hostile crate leaves no process from a macro, and does not mislead the parser of the output': same(
    'daemons, forged messages',
    'none is left, and the message is text',
  ),
  'fails the build of a crate that starts too many processes': same(
    'processes without end',
    /forked 1?\d\d times, then: Resource temporarily unavailable/,
  ),
  'fails the build of a crate that writes too much': same(
    'files without end',
    /wrote more than 256 MiB and was stopped \(COMPILE_DISK_MB\)/,
  ),
  'fails the build of a crate that uses too much memory': same(
    'memory in eight processes',
    /used more than 1024 MiB of memory together.*COMPILE_TOTAL_MEMORY_MB/,
  ),
  'fails the build of a crate that prints without end': same(
    'printing',
    /COMPILE_TOTAL_MEMORY_MB|memory allocation/,
  ),
  'removes the folders that a hostile crate leaves, deep and without permissions': same(
    'a full disk, 3000 folders deep, without rights',
    /full: (No space left on device|Permission denied).*; deep enough/,
  ),
  'fails the build of a crate that takes too long': same(
    'sleeping',
    /The crate edge-attack-never waited for 20 s without using the processor/,
  ),
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
  'sqlite-memory': 'the process of the service limits what it does for a call',
  sqlite: 'the process of the service limits what it does for a call',
  'sqlite-file': 'the process of the service opens files, not the handler',
  'sqlite-files': 'the process of the service opens files, not the handler',
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
        return it(`${attack} (${level})`, () => test((table[attack] as T[typeof attack])[level]));
      });
      if (untried.size > 0) throw new Error(`${title}, ${level}: not tried: ${[...untried].join('; ')}`);
    });
}
