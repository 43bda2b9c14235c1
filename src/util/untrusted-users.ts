/**
 * The user ids of untrusted programs, and of the product's own that root starts: each run of an untrusted program has
 * one that no other program runs as.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { chmod, chown, lchown, mkdir, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const execute = promisify(execFile);

/** Successive ids. */
export interface IdRange {
  readonly first: number;
  readonly count: number;
}

/**
 * What others take among the first 65,536 ids: the dynamic users of systemd, `nobody`, and -1, which no process can
 * have.
 */
const RESERVED = { first: 61_184, end: 65_536 };

/** Far above the ids that systems assign to people, services and containers. */
const PREFERRED: IdRange = { first: 1_900_000_000, count: 2 ** 24 };
const RANGE = mappedRange(readFileSync('/proc/self/uid_map', 'latin1'), PREFERRED);
/** The last ids are those of programs of the product, one each, and of a group of processes, and one of services. */
const OWN_COUNT = 6;
const UNTRUSTED_COUNT = RANGE.count - OWN_COUNT;
/** A group, and users for handlers, builds and services. */
const LEAST_COUNT = 4;

/** Capabilities to give files to other users, access these, and start and kill programs as them. */
const NEEDED_CAPABILITIES = { CHOWN: 0, DAC_OVERRIDE: 1, FOWNER: 3, KILL: 5, SETGID: 6, SETUID: 7 };
const effective = BigInt(
  `0x${/^CapEff:\s+(\w+)/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1] ?? '0'}`,
);

/** Whether this process can run programs as other users: as root, unless a container restricts it. */
export const HAS_UNTRUSTED_USERS =
  process.getuid?.() === 0 &&
  UNTRUSTED_COUNT >= LEAST_COUNT &&
  Object.values(NEEDED_CAPABILITIES).every((bit) => ((effective >> BigInt(bit)) & 1n) === 1n);

/** The group of all untrusted programs, which may traverse the folders above their files. */
export const UNTRUSTED_GROUP = RANGE.first;
/** The group of the processes of the product that are not root: they reach each other. */
export const PRODUCT_GROUP = RANGE.first + UNTRUSTED_COUNT;
/** The user and the group of the process `web`. */
export const WEB_USER = PRODUCT_GROUP + 1;
/** The user and the group of the process `actor-host`. */
export const ACTOR_HOST_USER = WEB_USER + 1;
/** The group of all processes of services: they see which handlers run. */
export const SERVICE_GROUP = ACTOR_HOST_USER + 1;
/** The user and the group of the processes that serve public ports. */
export const FRONT_USER = SERVICE_GROUP + 1;
/** The user and the group of processes of sqlite services, and of the files that they make. */
export const SQLITE_USER = SERVICE_GROUP + 2;
const SERVICE_COUNT = Math.floor(UNTRUSTED_COUNT / 4);
/** Those of handlers and builds. */
export const UNTRUSTED_USERS: IdRange = {
  first: RANGE.first + 1,
  count: UNTRUSTED_COUNT - 1 - SERVICE_COUNT,
};
/** Those of processes of services. */
export const SERVICE_USERS: IdRange = {
  first: UNTRUSTED_USERS.first + UNTRUSTED_USERS.count,
  count: SERVICE_COUNT,
};

/** Any of the ids; it may be in use: `RunUser` claims one that is not. */
export function randomUser({ first, count }: IdRange): number {
  return first + Math.floor(Math.random() * count);
}

/** Whether it is one of the ids of which each program has its own. */
export function isUserOfProgram(uid: number): boolean {
  return uid >= UNTRUSTED_USERS.first && uid < SERVICE_USERS.first + SERVICE_USERS.count;
}

/**
 * The range to use where only some ids exist, as in a container without full privileges: the upper half of the largest
 * range that is not reserved, when the preferred ids are not there.
 * @param map `/proc/self/uid_map`: first id, the same outside, count, on each line
 */
export function mappedRange(map: string, preferred: IdRange): IdRange {
  const ranges = map
    .trim()
    .split('\n')
    .map((line) => line.trim().split(/\s+/).map(Number))
    .map(([first = 0, , count = 0]) => ({ first, count }));
  const end = preferred.first + preferred.count;
  if (ranges.some(({ first, count }) => first <= preferred.first && end <= first + count)) return preferred;
  const usable = ranges.flatMap(withoutReserved);
  const largest = usable.reduce((a, b) => (b.count > a.count ? b : a), { first: 0, count: 0 });
  const lower = Math.ceil(largest.count / 2);
  return { first: largest.first + lower, count: largest.count - lower };
}

function withoutReserved({ first, count }: IdRange): IdRange[] {
  const end = first + count;
  const below = { first, count: Math.min(end, RESERVED.first) - first };
  const above = Math.max(first, RESERVED.end);
  return [below, { first: above, count: end - above }].filter((range) => range.count > 0);
}

/** Creates a folder that untrusted programs can traverse but not list, and other users cannot traverse. */
export async function makePassable(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  if (HAS_UNTRUSTED_USERS) await chown(folder, 0, UNTRUSTED_GROUP);
  await chmod(folder, HAS_UNTRUSTED_USERS ? 0o710 : 0o700);
}

/**
 * Takes a folder and all in it from the untrusted program whose it was, which must have ended, and lets others read it
 * as before: a later program may have the same user.
 */
export async function giveToRoot(folder: string): Promise<void> {
  if (!HAS_UNTRUSTED_USERS || (await stat(folder)).uid === 0) return;
  const all = (await readdir(folder)).map((name) => join(folder, name));
  if (all.length > 0) await execute('chown', ['-hR', '0', '--', ...all]);
  // Last: until then it is tried again.
  await lchown(folder, 0, UNTRUSTED_GROUP);
}

/** Gives a folder, and all in it, to an untrusted program that has not begun. */
export async function giveToUser(folder: string, user: number): Promise<void> {
  await execute('chown', ['-hR', `${user}:${UNTRUSTED_GROUP}`, '--', folder]);
}
