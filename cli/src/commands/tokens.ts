/** `edge token`. */

import { CliError } from '../errors.js';
import type { Me } from '../generated/routes.js';
import { confirm } from '../prompt.js';
import { type CommonOptions, isCode, type Session } from '../session.js';
import { timeOf } from '../text.js';
import { timeIn } from '../times.js';

interface CreateOptions extends CommonOptions {
  readonly permission?: Me['permissions'];
  readonly domain?: readonly string[];
  readonly expires?: string;
}

export async function listTokens(session: Session): Promise<void> {
  const tokens = await session.api.all('GET /api/tokens');
  session.out.result(tokens, () => {
    if (tokens.length === 0) session.out.note('There are none.');
    else
      session.out.table(
        ['id', 'name', 'domains', 'expires', 'last used'],
        tokens.map((one) => [
          one.id,
          one.name,
          one.domains.join(', ') || 'all',
          timeOf(one.expires_at) || 'never',
          timeOf(one.last_used_at) || 'never',
        ]),
      );
  });
}

export async function createToken(session: Session, options: CreateOptions, name: string): Promise<void> {
  const permissions = options.permission ?? (await session.api.get('GET /api/session')).permissions;
  const body = {
    name,
    permissions,
    ...(options.domain && { domains: options.domain }),
    ...(options.expires !== undefined && { expires_at: timeIn(options.expires) }),
  };
  const created = await session.api.get('POST /api/tokens', { body }).catch((thrown: unknown) => {
    if (!(thrown instanceof CliError) || !isCode(thrown, 'forbidden')) throw thrown;
    // The command line has no sessions of users, who make tokens for the rights that they have.
    const hint = `Users make them at ${session.access.url}/ui/access/tokens; or set EDGE_TOKEN to API_KEY.`;
    throw new CliError(thrown.message, { ...thrown.facts, hint });
  });
  session.out.result(created, () => {
    session.out.note(`The token ${name} (${created.id}). It is not shown again:`);
    session.out.line(created.token);
  });
}

export async function deleteToken(
  session: Session,
  { yes }: CommonOptions & { readonly yes?: boolean },
  id: string,
): Promise<void> {
  await confirm(session, `Revoke the token ${id}?`, yes);
  const deleted = await session.api.get('DELETE /api/tokens/{id}', { params: { id } });
  session.out.result(deleted, () => session.out.line(`Revoked: ${deleted.id}`));
}
