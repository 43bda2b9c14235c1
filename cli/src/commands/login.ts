/** `edge login` and `edge whoami`. */

import { type Access, normalUrl, readConfig, writeConfig } from '../config.js';
import { CliError, signInHint } from '../errors.js';
import type { Me } from '../generated/routes.js';
import { secretFrom } from '../prompt.js';
import type { CommonOptions, Session } from '../session.js';

const LOOPBACK = /^(localhost|.+\.localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

export async function login(
  session: Session,
  options: CommonOptions & { readonly name?: string },
  address: string,
): Promise<void> {
  const url = normalUrl(address, 'URL');
  const { protocol, hostname, host } = new URL(url);
  if (protocol === 'http:' && !LOOPBACK.test(hostname))
    session.out.warnings([`${url} is without TLS: whoever is on the way can read the token`]);
  const open = await session.apiAt({ url }).get('GET /api/session');
  if (open.kind === null && process.stdin.isTTY)
    session.out.note(`Tokens are made in the web UI: ${url}/ui/access/tokens`);
  const access: Access = { url, ...(open.kind === null && { token: await secretFrom(session, 'token') }) };
  const me = access.token === undefined ? open : await session.apiAt(access).get('GET /api/session');
  if (me.kind === null)
    throw new CliError(`${url} does not know this token`, {
      code: 'unauthorized',
      hint: 'Is it complete, and neither revoked nor expired? Nothing was kept.',
    });
  const name = options.name ?? host;
  const { contexts } = readConfig();
  writeConfig({ current: name, contexts: { ...contexts, [name]: access } });
  session.out.result({ context: name, url, ...publicPart(me) }, () => {
    session.out.line(`Signed in to ${url} as ${nameOf(me)}. The context ${name} is in use.`);
  });
}

export async function whoami(session: Session): Promise<void> {
  const { url, name, token } = session.access;
  const me = await session.api.get('GET /api/session');
  if (me.kind === null)
    throw new CliError(`${url} does not know who you are`, {
      code: 'unauthorized',
      hint: signInHint(url, token !== undefined),
    });
  session.out.result({ context: name ?? null, url, ...publicPart(me) }, () => {
    session.out.list([
      ['gateway', name === undefined ? url : `${url} (context ${name})`],
      ['who', nameOf(me)],
      ['domains', me.domains === null ? 'all' : me.domains.join(', ')],
      ['may', me.permissions.join(' ')],
    ]);
  });
}

function publicPart({ kind, user, permissions, domains }: Me) {
  return { kind, user, permissions, domains };
}

function nameOf({ kind, user }: Me): string {
  const how: Readonly<Record<string, string>> = {
    anonymous: 'anybody: the API is open',
    api_key: 'whoever has API_KEY',
    token: user ? `${user.email} (${user.role}), by a token` : 'whoever has this token',
  };
  return how[kind ?? ''] ?? (user ? `${user.email} (${user.role})` : String(kind));
}
