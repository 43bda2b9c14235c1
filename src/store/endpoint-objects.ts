/** Writes an endpoint of an apply: its fields, variables, services, schedules, and what it should serve. */

import { isDeepStrictEqual } from 'node:util';
import { titleOf } from '../apply/keys.js';
import type { EndpointObject, ScheduleObject } from '../apply/objects.js';
import { AppError } from '../errors.js';
import { SOURCE_MEMBERS } from '../model/source-files.js';
import { changed, type ObjectWrite, type WriteContext } from './apply-context.js';
import { replaceBindings } from './bindings.js';
import type { Store } from './database.js';
import { addDeployment, requestStop } from './deployments.js';
import { createEndpoint, updateEndpoint } from './endpoints.js';
import { replaceSchedules, type ScheduleSettings } from './schedules.js';
import { replaceVariables } from './variables.js';
import { addVersions } from './versions.js';

const FIELDS = [
  ...(['name', 'path', 'description', 'enabled'] as const),
  ...SOURCE_MEMBERS,
  ...(['limits', 'policies'] as const),
] as const;

export async function writeEndpoint(
  tx: Store,
  { id, before, after }: ObjectWrite<EndpointObject>,
  context: WriteContext,
): Promise<void> {
  const { actor } = context.origin;
  const collection_id = await collectionIdOf(tx, after);
  if (!before) {
    const { method, host: domain, stack } = after;
    const fields = changed(null, after, FIELDS) as Pick<EndpointObject, (typeof FIELDS)[number]>;
    await createEndpoint(tx, { ...fields, method, domain, collection_id, stack }, id);
  } else await updateEndpoint(tx, id, { ...changed(before, after, FIELDS), collection_id });
  if (!isDeepStrictEqual(before?.variables ?? {}, after.variables))
    await replaceVariables(tx, { scope: 'endpoint', id }, after.variables, actor);
  if (!isDeepStrictEqual(before?.bindings ?? {}, after.bindings))
    await replaceBindings(tx, id, await servicesOf(tx, after));
  if (!isDeepStrictEqual(before?.schedules ?? [], after.schedules))
    context.scheduled(await replaceSchedules(tx, id, after.schedules.map(settingsOf), context.nextRun));
  if (before && before.running !== false && after.running === false)
    await requestStop(tx, id, context.origin);
  else if (after.running === 'other' && before?.running !== 'other') await serveAgain(tx, id, context);
  else await deploy(tx, id, after, context);
}

async function collectionIdOf(tx: Store, endpoint: EndpointObject): Promise<string | null> {
  const { collection, collection_host: host } = endpoint;
  if (collection === null || host === null) return null;
  const existing = await tx
    .knex('collections')
    .join('domains', 'domains.id', 'domain_id')
    .where({ 'collections.name': collection, 'domains.host': host })
    .first<{ id: string } | undefined>('collections.id');
  if (existing) return existing.id;
  const text = `The ${titleOf(endpoint)}: there is no collection "${collection}" any more. Plan again.`;
  throw new AppError('plan_changed', text);
}

async function servicesOf(tx: Store, endpoint: EndpointObject): Promise<Record<string, string>> {
  const names = Object.values(endpoint.bindings);
  const rows = await tx.knex('services').whereIn('name', names).select<{ id: string; name: string }[]>();
  const ids = new Map(rows.map(({ id, name }) => [name, id]));
  return Object.fromEntries(
    Object.entries(endpoint.bindings).map(([pool, name]) => {
      const id = ids.get(name);
      if (id !== undefined) return [pool, id];
      const text = `The ${titleOf(endpoint)}: there is no service "${name}" any more. Plan again.`;
      throw new AppError('plan_changed', text);
    }),
  );
}

function settingsOf({ body, method, path, headers, ...times }: ScheduleObject): ScheduleSettings {
  return { ...times, request: { method, path, headers, body: Buffer.from(body ?? '', 'base64') } };
}

/** Has those versions serve that served before the apply that is rolled back. */
async function serveAgain(tx: Store, id: string, { served, origin, applyId }: WriteContext): Promise<void> {
  const deployed = served?.get(id);
  if (deployed) await addDeployment(tx, { endpointId: id, kind: 'rollback', ...deployed, origin, applyId });
}

/** Has the newest code serve, where it was compiled for that. */
async function deploy(
  tx: Store,
  id: string,
  { code, edition, entry, files, dependencies, lock }: EndpointObject,
  { applyId, origin, compiled }: WriteContext,
): Promise<void> {
  const handler = compiled.get(id);
  if (!handler || code === null) return;
  const { sourceKey, artifact, resolvedLock, buildId } = handler;
  const source = {
    ...{ sourceKey, code, edition, entry, files, dependencies: dependencies ?? {}, lock },
    ...{ artifact, resolvedLock, actor: origin.actor },
  };
  const [added] = await addVersions(tx, [id], source);
  if (!added) throw new Error(`no version was added to the endpoint ${id}`);
  const { version, isNew } = added;
  await addDeployment(tx, {
    endpointId: id,
    kind: 'deploy',
    targets: [{ version, percent: 100, artifact }],
    origin,
    draft: { version, isNew, buildId, draftSourceKey: sourceKey },
    applyId,
  });
}
