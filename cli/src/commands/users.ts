/** `edge user`. */

import { CliError } from '../errors.js';
import type { User } from '../generated/routes.js';
import { confirm, secretFrom } from '../prompt.js';
import type { CommonOptions, Session } from '../session.js';
import { safeLine } from '../text.js';

interface CreateOptions extends CommonOptions {
  readonly role: User['role'];
  readonly name?: string;
  readonly domain?: readonly string[];
}

export async function listUsers(session: Session): Promise<void> {
  const users = await session.api.all('GET /api/users');
  session.out.result(users, () => {
    if (users.length === 0) session.out.note('There are none.');
    else
      session.out.table(
        ['email', 'name', 'role', 'domains'],
        users.map(({ email, name, role, domains }) => [email, name, role, domains.join(', ') || 'all']),
      );
  });
}

export async function createUser(session: Session, options: CreateOptions, email: string): Promise<void> {
  const { role, name = email, domain } = options;
  const password = await secretFrom(session, 'password');
  const { kind } = await session.api.get('GET /api/session');
  const user = await session.api.get('POST /api/users', {
    body: { email, name, password, role, ...(domain && { domains: domain }) },
  });
  if (kind === 'anonymous') session.out.warnings([closedNow(session.access.url)]);
  session.out.result(user, () => session.out.line(safeLine(`Added: ${user.email} (${user.role})`)));
}

/** The first user closes an API that was open, for whoever has made the user, too. */
function closedNow(url: string): string {
  return (
    `The API was open to everybody on its machine, and is closed now. Sign in at ${url}/ui with this password, ` +
    `make a token at ${url}/ui/access/tokens, and keep it with \`edge login ${url}\`.`
  );
}

export async function deleteUser(
  session: Session,
  { yes }: CommonOptions & { readonly yes?: boolean },
  email: string,
): Promise<void> {
  const users = await session.api.all('GET /api/users');
  const user = users.find((one) => one.email === email.toLowerCase() || one.id === email);
  if (!user)
    throw new CliError(`There is no user ${email}`, {
      code: 'not_found',
      hint: '`edge user list` lists them.',
    });
  await confirm(session, `Delete the user ${user.email}, with sessions and tokens?`, yes);
  const deleted = await session.api.get('DELETE /api/users/{id}', { params: { id: user.id } });
  session.out.result(deleted, () => session.out.line(safeLine(`Deleted: ${user.email}`)));
}
