/**
 * Programs in Node that root starts for another user: they load their files, which may be where only root can read them
 * (a checkout below `/root`), and become that user before they do anything else. All capabilities are lost with it
 * (capabilities(7)), and since the launcher has set `no_new_privs`, none is gained again.
 */

/** Ids; see `Identity` of the launcher. */
interface User {
  readonly user: number;
  readonly group: number;
  readonly groups: readonly number[];
}

const ARGUMENT = '--become=';

/** The argument by which a program knows whom it becomes. */
export function becomesArgument({ user, group, groups }: User): string {
  return `${ARGUMENT}${[user, group, ...groups].join(':')}`;
}

/**
 * Becomes the user that the arguments name, if they do. What is loaded after this must be readable for that user.
 * @throws Error when this process may not become that user
 */
export function becomeUserIfAsked(): void {
  const ids = process.argv.find((argument) => argument.startsWith(ARGUMENT))?.slice(ARGUMENT.length);
  if (ids === undefined) return;
  const [user = Number.NaN, group = Number.NaN, ...groups] = ids.split(':').map(Number);
  process.setgroups?.(groups);
  process.setgid?.(group);
  process.setuid?.(user);
}
