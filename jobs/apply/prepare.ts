/**
 * The third step of an apply: every live gateway starts the handlers as they will be, with the variables and limits
 * that they will have, and routes nothing to them. The commit finds them ready.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { collectionKey, domainKey, keyOf, ownerAmong, titleOf } from '../../src/apply/keys.js';
import type { EndpointObject, InstallationObject, ObjectChange } from '../../src/apply/objects.js';
import { AppError } from '../../src/errors.js';
import type { AddressedNode } from '../../src/internal/addresses.js';
import type { PreparedHandler } from '../../src/internal/gateway-requests.js';
import { ownerOfActor } from '../../src/model/owner.js';
import type { Apply } from '../../src/store/applies.js';
import type { ExistingObject } from '../../src/store/apply-commit.js';
import type { CompiledHandler } from '../../src/store/apply-context.js';
import { savedVariables, servedBefore } from '../../src/store/apply-rows.js';
import { deployedTargets } from '../../src/store/endpoint-runs.js';
import { type OwnedVariable, variablesOfOwners } from '../../src/store/variables.js';
import { type ApplyContext, type ApplyTry, actorOfApply } from './context.js';

/** Handlers in one request to a gateway: it starts about so many at a time. */
const BATCH = 8;
/** A gateway that does not answer has ended, or is being started. */
const RETRY_MS = 500;
/** Longer than until it is known that a gateway has ended. */
const GIVE_UP_MS = 30_000;
/**
 * All other applies wait meanwhile. A gateway keeps less than can be prepared in that time; what is left is started
 * after the commit, for which the time is limited, too, and all is undone when one does not start.
 */
const PREPARE_MS = 60_000;

/**
 * Has all gateways prepare all handlers. One that this worker cannot reach is left out: the commit shows what it finds.
 * @throws AppError handler_start_failed naming the endpoint
 */
export async function prepareAll(
  context: ApplyContext,
  current: ApplyTry,
  compiled: ReadonlyMap<string, CompiledHandler>,
  now: ReadonlyMap<string, ExistingObject>,
): Promise<void> {
  const handlers = await handlersToPrepare(context, current.apply, compiled, now);
  if (handlers.length > 0) await prepareHandlers(context, current, handlers);
}

/**
 * Has all gateways prepare these handlers, as far as the time is enough for that.
 * @param limitMs after which no more are begun
 * @param giveUpMs so long a gateway that does not answer is waited for, also beyond that: it may be being started
 * @throws AppError handler_start_failed naming the endpoint; no_gateway
 */
export async function prepareHandlers(
  context: Pick<ApplyContext, 'gateways' | 'log'>,
  current: ApplyTry,
  handlers: readonly PreparedHandler[],
  limitMs: number = PREPARE_MS,
  giveUpMs: number = GIVE_UP_MS,
): Promise<void> {
  const { signal, log, progress } = current;
  const began = performance.now();
  const isOver = () => performance.now() - began >= limitMs;
  const prepared = new Map<string, number>();
  /** Since when gateways do not answer. */
  const failing = new Map<string, number>();
  await progress('preparing', 'prepared', 0, handlers.length);
  for (;;) {
    signal.throwIfAborted();
    const nodes = await context.gateways.nodes();
    const left = nodes.filter(({ id, address }) => address && (prepared.get(id) ?? 0) < handlers.length);
    if (left.length === 0 && prepared.size > 0) break;
    if (isOver() && prepared.size > 0 && !left.some(({ id }) => failing.has(id))) {
      const ready = Math.min(...prepared.values());
      log.warn(
        { handlers: handlers.length, ready },
        'not all handlers of an apply could be prepared in time',
      );
      return;
    }
    const results = await Promise.all(
      left.map(async (node) => {
        // Otherwise it is not known yet whether there is a gateway that answers, or whether this one does.
        const mayEnd = () => isOver() && prepared.size > 0 && !failing.has(node.id);
        const hasGoneOn = await prepareOn(context, current, node, handlers, prepared, mayEnd, () =>
          failing.delete(node.id),
        );
        if (!hasGoneOn && !failing.has(node.id)) failing.set(node.id, performance.now());
        return hasGoneOn;
      }),
    );
    for (const id of failing.keys()) if (!left.some((node) => node.id === id)) failing.delete(id);
    const now = performance.now();
    const isNobody = left.length === 0 && prepared.size === 0 && now - began > giveUpMs;
    const hasFailed = left.some(({ id }) => now - (failing.get(id) ?? now) > giveUpMs);
    if (isNobody || (hasFailed && (isOver() || !results.includes(true))))
      throw new AppError(
        'no_gateway',
        'No gateway can be reached that could start the handlers, or one does not answer; nothing was changed.',
      );
    if (left.length === 0 || results.includes(false)) await delay(RETRY_MS, undefined, { signal });
  }
  log.info({ handlers: handlers.length, gateways: prepared.size }, 'handlers of an apply are prepared');
}

/**
 * @param mayEnd whether no more need be prepared
 * @param answered called when the gateway has prepared some
 * @returns false when the gateway has not answered
 */
async function prepareOn(
  { gateways, log }: Pick<ApplyContext, 'gateways' | 'log'>,
  { apply, signal, progress }: ApplyTry,
  { id, address }: AddressedNode,
  handlers: readonly PreparedHandler[],
  prepared: Map<string, number>,
  mayEnd: () => boolean,
  answered: () => void,
): Promise<boolean> {
  if (!address) return true;
  for (let at = prepared.get(id) ?? 0; at < handlers.length; at = prepared.get(id) ?? at) {
    signal.throwIfAborted();
    if (mayEnd()) return true;
    try {
      await gateways.prepare(address, { applyId: apply.id, handlers: handlers.slice(at, at + BATCH) });
    } catch (thrown) {
      if (!(thrown instanceof AppError) || thrown.code !== 'no_gateway') throw thrown;
      log.warn({ err: thrown, node_id: id }, 'a gateway has not prepared handlers; trying again');
      return false;
    }
    answered();
    prepared.set(id, Math.min(at + BATCH, handlers.length));
    const least = Math.min(...prepared.values());
    await progress('preparing', 'prepared', least, handlers.length);
  }
  return true;
}

/** Those that get another version, and those that run and get other variables or limits. */
async function handlersToPrepare(
  { lifecycle: { store } }: ApplyContext,
  apply: Apply,
  compiled: ReadonlyMap<string, CompiledHandler>,
  now: ReadonlyMap<string, ExistingObject>,
): Promise<PreparedHandler[]> {
  const { changes, rollback_of } = apply;
  const principal = ownerOfActor(actorOfApply(apply));
  const after = new Map([...now].map(([key, { id, object }]) => [key, { id, object }]));
  // Routes may change hands.
  for (const { before } of changes) if (before) after.delete(keyOf(before));
  for (const { id, after: object } of changes)
    if (object && id !== null) after.set(keyOf(object), { id, object });
  const served = rollback_of === null ? undefined : await servedBefore(store, rollback_of);
  const servesAgain = new Set(changes.flatMap((change) => (isServedAgain(change) ? [change.id] : [])));
  const changed = new Set(
    changes.flatMap(({ before, after: object }) =>
      object && isNewStart(before, object) ? [keyOf(object)] : [],
    ),
  );
  const concerned = [...after.values()].flatMap(({ id, object }) => {
    if (object.kind !== 'endpoint' || object.running === false) return [];
    const keys = [keyOf(object), ...ownersOf(object)];
    const isNew = compiled.has(id) || servesAgain.has(id) || keys.some((key) => changed.has(key));
    return isNew ? [{ id, object, keys }] : [];
  });
  const runs = await deployedTargets(
    store,
    concerned.map(({ id }) => id),
  );
  const owners = new Set(concerned.flatMap(({ keys }) => keys.flatMap((key) => after.get(key)?.id ?? [])));
  const back = changes.flatMap(({ id, before }) => (!before && id !== null && owners.has(id) ? [id] : []));
  const stored = grouped([
    ...(await variablesOfOwners(store, [...owners])),
    ...(rollback_of === null ? [] : await savedVariables(store, rollback_of, back)),
  ]);
  return concerned.flatMap(({ id, object, keys }) => {
    const variables = variablesAfter(keys, after, stored);
    const targets = (servesAgain.has(id) ? served?.get(id)?.targets : runs.get(id)) ?? [];
    const artifacts = compiled.has(id)
      ? [compiled.get(id)?.artifact ?? '']
      : targets.map(({ artifact }) => artifact);
    const owner = ownerAmong(after, object.host);
    return artifacts.map((artifact) => ({
      ...{
        endpointId: id,
        ...{ owner, principal },
        name: `The ${titleOf(object)}`,
        artifact,
        limits: object.limits,
        variables,
      },
    }));
  });
}

/** Whether, in a rollback, what served before serves again, an older version or several. */
function isServedAgain({ before, after }: ObjectChange): boolean {
  return (
    after?.kind === 'endpoint' &&
    after.running === 'other' &&
    !(before?.kind === 'endpoint' && before.running === 'other')
  );
}

/** Whether handlers are started with something else than before. */
function isNewStart(before: InstallationObject | null, after: InstallationObject): boolean {
  if (after.kind === 'service') return false;
  const old = before?.kind === after.kind ? before : undefined;
  if (!isDeepStrictEqual(old?.variables ?? {}, after.variables)) return true;
  if (after.kind !== 'endpoint' || old?.kind !== 'endpoint') return false;
  return (
    !isDeepStrictEqual(old.limits, after.limits) ||
    old.collection !== after.collection ||
    old.collection_host !== after.collection_host
  );
}

/** The keys of what an endpoint has variables of, the nearest first. */
function ownersOf({ host, collection, collection_host }: EndpointObject): string[] {
  if (collection !== null && collection_host !== null)
    return [collectionKey(collection_host, collection), domainKey(collection_host)];
  return [domainKey(host)];
}

/** What will be in force: plain variables of the plan, and secrets as they are stored. The nearest counts. */
function variablesAfter(
  keys: readonly string[],
  after: ReadonlyMap<string, ExistingObject>,
  stored: ReadonlyMap<string, readonly OwnedVariable[]>,
): PreparedHandler['variables'] {
  const inForce = new Map<string, PreparedHandler['variables'][number]>();
  for (const key of keys) {
    const { id, object } = after.get(key) ?? {};
    if (id === undefined || !object || object.kind === 'service') continue;
    const secrets = (stored.get(id) ?? []).filter(({ value }) => value === null);
    const plain = Object.entries(object.variables).map(([name, value]) => ({
      name,
      value,
      value_encrypted: null,
    }));
    for (const { name, value, value_encrypted } of [...secrets, ...plain])
      if (!inForce.has(name)) inForce.set(name, { name, value, value_encrypted });
  }
  return [...inForce.values()];
}

function grouped(variables: readonly OwnedVariable[]): Map<string, OwnedVariable[]> {
  const groups = new Map<string, OwnedVariable[]>();
  for (const variable of variables) {
    const group = groups.get(variable.owner_id);
    if (group) group.push(variable);
    else groups.set(variable.owner_id, [variable]);
  }
  return groups;
}
