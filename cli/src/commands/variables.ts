/** `edge variable` and `edge secret`. */

import { CliError, UsageError } from '../errors.js';
import { ownerOf, requireOwner } from '../names.js';
import { confirm, secretFrom } from '../prompt.js';
import type { CommonOptions, Session } from '../session.js';
import { safeLine, timeOf } from '../text.js';

interface OwnerOptions extends CommonOptions {
  readonly domain?: string;
  readonly collection?: string;
  readonly endpoint?: string;
  readonly yes?: boolean;
}
type Owner = Awaited<ReturnType<typeof ownerOf>>;

export async function listSecrets(session: Session, options: OwnerOptions): Promise<void> {
  const owner = await ownerOf(session, options);
  const secrets = await (owner
    ? session.api.get(`GET /api/${owner.resource}/{id}/secrets`, { params: { id: owner.id } })
    : session.api.get('GET /api/secrets'));
  session.out.result(secrets, () => {
    if (secrets.length === 0) session.out.note('There are none.');
    else
      session.out.table(
        ['name', 'set', 'by'],
        secrets.map(({ name, updated_at, actor }) => [name, timeOf(updated_at), actorOf(actor)]),
      );
  });
}

export async function setSecret(session: Session, options: OwnerOptions, name: string): Promise<void> {
  const owner = await ownerOf(session, options);
  const body = { value: await secretFrom(session, 'value') };
  const { data, warnings } = await (owner
    ? session.api.call(`PUT /api/${owner.resource}/{id}/secrets/{name}`, {
        params: { id: owner.id, name },
        body,
      })
    : session.api.call('PUT /api/secrets/{name}', { params: { name }, body }));
  session.out.warnings(warnings);
  session.out.result(data, () => session.out.line(safeLine(`Set: secret ${name}`)));
}

export async function removeSecret(session: Session, options: OwnerOptions, name: string): Promise<void> {
  const owner = await ownerOf(session, options);
  await confirm(session, `Delete the secret ${name}?`, options.yes);
  const { data, warnings } = await (owner
    ? session.api.call(`DELETE /api/${owner.resource}/{id}/secrets/{name}`, {
        params: { id: owner.id, name },
      })
    : session.api.call('DELETE /api/secrets/{name}', { params: { name } }));
  session.out.warnings(warnings);
  session.out.result(data, () => session.out.line(safeLine(`Deleted: secret ${name}`)));
}

export async function listVariables(session: Session, options: OwnerOptions): Promise<void> {
  const variables = await read(session, requireOwner(await ownerOf(session, options)));
  session.out.result(variables, () => {
    const rows = Object.entries(variables);
    if (rows.length === 0) session.out.note('There are none.');
    else session.out.table(['name', 'value'], rows);
  });
}

export async function setVariables(session: Session, options: OwnerOptions, pairs: string[]): Promise<void> {
  const changed = Object.fromEntries(pairs.map(pairOf));
  const owner = requireOwner(await ownerOf(session, options));
  const said = `Set: ${Object.keys(changed).join(', ')}`;
  await change(session, owner, changed, said);
}

export async function removeVariables(
  session: Session,
  options: OwnerOptions,
  names: string[],
): Promise<void> {
  const owner = requireOwner(await ownerOf(session, options));
  const before = await read(session, owner);
  const missing = names.find((name) => !Object.hasOwn(before, name));
  if (missing !== undefined)
    throw new CliError(`There is no variable ${missing}`, {
      code: 'not_found',
      hint: `There are: ${Object.keys(before).join(', ') || 'none'}.`,
    });
  await confirm(session, `Delete ${names.join(', ')}?`, options.yes);
  const deleted = Object.fromEntries(names.map((name) => [name, null]));
  await change(session, owner, deleted, `Deleted: ${names.join(', ')}`);
}

function read(
  { api }: Session,
  { resource, id }: NonNullable<Owner>,
): Promise<Readonly<Record<string, string>>> {
  return api.get(`GET /api/${resource}/{id}/variables`, { params: { id } });
}

/** Those that are not named stay, also what others change at the same time. @param body null deletes a variable */
async function change(
  session: Session,
  { resource, id }: NonNullable<Owner>,
  body: Readonly<Record<string, string | null>>,
  said: string,
): Promise<void> {
  const { data, warnings } = await session.api.call(`PATCH /api/${resource}/{id}/variables`, {
    params: { id },
    body,
  });
  session.out.warnings(warnings);
  session.out.result(data, () => session.out.line(safeLine(said)));
}

function pairOf(text: string): [string, string] {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new UsageError(`${text} is not NAME=VALUE`);
  return [name, value];
}

/** Who did something, as rows have it. */
export function actorOf(actor: Readonly<Record<string, unknown>> | null): string {
  if (!actor) return '';
  return String(actor['email'] ?? actor['name'] ?? actor['kind'] ?? '');
}
