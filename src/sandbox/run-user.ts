/**
 * The separate user of one run of an untrusted program, when this process is root. All processes of the program are
 * found by it, even if they try to hide.
 */
import { readdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { lchown } from 'node:fs/promises';
import { join } from 'node:path';
import { isErrno } from '../util/errno.js';
import { isRunning, THIS_PROCESS } from '../util/process-liveness.js';
import { isUserOfProgram, randomUser, UNTRUSTED_GROUP, UNTRUSTED_USERS } from '../util/untrusted-users.js';
import { killAll, processesOfUser, usersWithProcesses } from './kill.js';

/**
 * The name of the record of a user that is in use. It is a symbolic link, whose target identifies the process
 * that runs programs as it: unlike a file, a link is made together with its content.
 */
const RECORD = /^user-(\d+)$/;
/** Some random ids can be in use, more often in a container with few ids. */
const ATTEMPTS = 1_000;

/** Used by one program at a time. */
export class RunUser {
  readonly #records: string | undefined;
  #id: number | undefined;
  #isClaimed = false;

  /**
   * @param records folder for one record per user in use, which keeps other programs from using it, and by which
   * `killAbandoned` finds programs of a killed process
   * @param id the user of an earlier run, to reuse its files
   */
  constructor(records: string | undefined, id?: number) {
    this.#records = records;
    this.#id = id;
  }

  get id(): number {
    if (this.#id === undefined) throw new Error('The user of an untrusted program was not claimed.');
    return this.#id;
  }

  /** Makes it the owner of a folder or file, not recursively. */
  takeOver(path: string): Promise<void> {
    this.claim();
    return lchown(path, this.id, UNTRUSTED_GROUP);
  }

  /**
   * To be called before a program is started: keeps others from using the user until the program has ended.
   * @throws when the user of an earlier run is in use
   */
  claim(): void {
    if (this.#isClaimed) return;
    if (this.#id === undefined) this.#id = claimUnused(this.#records);
    else if (!claim(this.#records, this.#id)) throw new Error(`the user ${this.#id} is in use`);
    this.#isClaimed = true;
  }

  /** Kills all its processes. The user stays claimed when some cannot be ended. */
  async end(): Promise<void> {
    if (await killAll(() => processesOfUser(this.id))) this.release();
  }

  /** To be called when it has no more processes. */
  release(): void {
    if (!this.#isClaimed) return;
    this.#isClaimed = false;
    if (this.#records === undefined) return;
    rmSync(recordOf(this.#records, this.id), { force: true });
  }
}

/**
 * Claims a user that no process runs as: the records are those of one installation, a machine can have several. That
 * two of these choose the same one, of thousands at least, within a second is left to chance.
 */
function claimUnused(records: string | undefined): number {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const id = randomUser(UNTRUSTED_USERS);
    if (!usersWithProcesses().has(id) && claim(records, id)) return id;
  }
  throw new Error('There is no user id left for an untrusted program.');
}

/** @returns false when it is claimed already */
function claim(records: string | undefined, id: number): boolean {
  if (records === undefined) return true;
  try {
    symlinkSync(THIS_PROCESS, recordOf(records, id));
  } catch (error) {
    if (isErrno(error, 'EEXIST')) return false;
    throw error;
  }
  return true;
}

function recordOf(records: string, id: number): string {
  return join(records, `user-${id}`);
}

/**
 * Kills the untrusted programs of processes that were killed.
 * @param records as given to `RunUser`
 */
export async function killAbandoned(records: string): Promise<void> {
  // Many records have the same owner.
  const running = new Map<string, boolean>();
  const isOwnerRunning = (owner: string) => {
    const known = running.get(owner) ?? isRunning(owner);
    running.set(owner, known);
    return known;
  };
  for (const name of readdirSync(records)) {
    const record = join(records, name);
    const user = Number(RECORD.exec(name)?.[1]);
    if (!isUserOfProgram(user)) continue;
    const owner = ownerOf(record);
    if (owner === undefined || isOwnerRunning(owner)) continue;
    if (await killAll(() => processesOfUser(user))) rmSync(record, { force: true });
  }
}

/** Undefined when the record was removed meanwhile. */
function ownerOf(record: string): string | undefined {
  try {
    return readlinkSync(record);
  } catch (error) {
    if (isErrno(error, 'ENOENT')) return undefined;
    throw error;
  }
}
