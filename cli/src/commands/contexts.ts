/** `edge context`: the gateways that are kept. */

import { readConfig, unknownContext, writeConfig } from '../config.js';
import { confirm } from '../prompt.js';
import type { CommonOptions, Session } from '../session.js';

export async function listContexts(session: Session): Promise<void> {
  const { current, contexts } = readConfig();
  const list = Object.entries(contexts).map(([name, { url, token }]) => ({
    name,
    url,
    current: name === current,
    has_token: token !== undefined,
  }));
  session.out.result(list, () => {
    if (list.length === 0) session.out.note('There are none; `edge login URL` makes one.');
    else
      session.out.table(
        ['', 'name', 'url', 'token'],
        list.map((one) => [one.current ? '*' : '', one.name, one.url, one.has_token ? 'yes' : 'none']),
      );
  });
}

export async function useContext(session: Session, _options: CommonOptions, name: string): Promise<void> {
  const { contexts } = readConfig();
  const context = contexts[name];
  if (!context) throw unknownContext(name, contexts);
  writeConfig({ current: name, contexts });
  session.out.result({ context: name, url: context.url }, () =>
    session.out.line(`The context ${name} is in use: ${context.url}`),
  );
}

export async function removeContext(
  session: Session,
  { yes }: CommonOptions & { readonly yes?: boolean },
  name: string,
): Promise<void> {
  const { current, contexts } = readConfig();
  const { [name]: removed, ...others } = contexts;
  if (!removed) throw unknownContext(name, contexts);
  await confirm(session, `Forget the context ${name} and its token?`, yes);
  writeConfig({ contexts: others, ...(current !== undefined && current !== name && { current }) });
  session.out.result({ context: name, removed: true }, () =>
    session.out.line(`Forgotten: ${name}. Its token is still valid; \`edge token delete\` revokes tokens.`),
  );
}
