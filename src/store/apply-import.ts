/** Applies an import: collection, endpoints and the import's own row, all in one transaction or not at all. */
import { AppError } from '../errors.js';
import type { MatchProblem, ServiceBinding } from '../model/imported-parts.js';
import { tooLargeForDomain } from '../model/policies/room.js';
import { KeyedQueue } from '../util/keyed-queue.js';
import type { BoundService } from './bindings.js';
import { isLockTimeout, type Store, transaction } from './database.js';
import { bindServices } from './import-bindings.js';
import { endpointsNotAmong } from './import-rows.js';
import { type ImportScope, type ImportTarget, openScope } from './import-scope.js';
import {
  type ApiToImport,
  type ImportedRows,
  type ReplacedCode,
  type UnhandledEndpoint,
  writeEndpoints,
} from './imported-endpoints.js';
import { type ImportOutcome, type NewImport, recordImport } from './imports.js';
import { policyWeight } from './policy-weight.js';
import { namingRouteOwner, type RouteClaim } from './routed-endpoints.js';

interface ImportWarning {
  readonly kind: string;
  readonly text: string;
}

/** The row of an import, without its outcome. */
type ImportRecord = Omit<NewImport, 'title' | 'outcome'>;

export interface ImportToApply extends ApiToImport {
  /** A document comes without handlers. */
  readonly kind: 'document' | 'bundle';
  readonly warnings: readonly ImportWarning[];
  readonly problems: readonly MatchProblem[];
  readonly bindings: readonly ServiceBinding[];
}

/** What an import has done, or would do. */
export interface AppliedImport {
  readonly outcome: ImportOutcome;
  /** The services that it has bound, with their new versions. */
  readonly bound: readonly BoundService[];
  readonly isNewCollection: boolean;
}

/**
 * Serializes imports of this process into the same domain without holding a connection to the database. Imports of
 * several processes wait for locks.
 */
const turns = new KeyedQueue();

/**
 * Stores an import and its row.
 * @param policyLimit bytes that the policies of the host may have together
 * @throws AppError not_found, domain_mismatch, route_taken, invalid_input, invalid_spec, invalid_bundle, import_busy
 */
export function applyImport(
  store: Store,
  target: ImportTarget,
  api: ImportToApply,
  record: ImportRecord,
  policyLimit: number,
): Promise<AppliedImport> {
  return inTurn(store, target, policyLimit, async (tx, limit, claim) => {
    const applied = await writeImport(tx, target, api, limit, claim);
    await recordImport(tx, { ...record, title: api.title, outcome: applied.outcome });
    return applied;
  });
}

/**
 * What `applyImport` would do and how it would fail, without any change: the import is written and rolled back.
 * @throws AppError as `applyImport`
 */
export async function planImport(
  store: Store,
  target: ImportTarget,
  api: ImportToApply,
  policyLimit: number,
): Promise<AppliedImport> {
  let planned: AppliedImport | undefined;
  const rollback = new Error('This import is a dry run');
  try {
    await inTurn(store, target, policyLimit, async (tx, limit, claim) => {
      planned = await writeImport(tx, target, api, limit, claim);
      throw rollback;
    });
  } catch (thrown) {
    if (thrown !== rollback) throw thrown;
  }
  if (!planned) throw new Error('A dry run has ended without its result');
  return planned;
}

/** The policies of a host would have become larger than they may. */
class TooLarge extends Error {
  constructor(readonly weight: number) {
    super('The policies of an import are too large');
  }
}

/**
 * Runs an import in a transaction.
 * @param write gets the limit for policies, and calls `claim` with the routes that it is about to write
 * @throws AppError invalid_input when the policies have become larger than they may
 */
function inTurn<T>(
  store: Store,
  target: ImportTarget,
  policyLimit: number,
  write: (tx: Store, limit: number, claim: (next: readonly RouteClaim[]) => void) => Promise<T>,
): Promise<T> {
  const { domain, domainId, createCollection } = target;
  const attempt = (limit: number) => {
    let claims: readonly RouteClaim[] = [];
    const claim = (next: readonly RouteClaim[]) => {
      claims = next;
    };
    return namingRouteOwner(store, { claims: () => claims }, () =>
      transaction(store, (tx) => write(tx, limit, claim)),
    ).catch((thrown: unknown) => {
      throw isLockTimeout(thrown) ? busy(target, thrown) : thrown;
    });
  };
  const run = () =>
    attempt(policyLimit).catch(async (thrown: unknown) => {
      if (!(thrown instanceof TooLarge)) throw thrown;
      // Others may have been accepted under other settings: what adds nothing to them is written.
      if (thrown.weight > (await policyWeight(store, domain)))
        throw new AppError('invalid_input', `query.validate: ${tooLargeForDomain(domain, policyLimit)}`);
      return attempt(thrown.weight);
    });
  // Always in this order: first the domain, then the collection.
  return turns.run(`domain ${domain}`, () =>
    createCollection ? turns.run(`collections of ${domainId}`, run) : run(),
  );
}

async function writeImport(
  tx: Store,
  target: ImportTarget,
  api: ImportToApply,
  policyLimit: number,
  claim: (claims: readonly RouteClaim[]) => void,
): Promise<AppliedImport> {
  const scope = await openScope(tx, target, api);
  const written = await writeEndpoints(tx, scope, api, claim);
  const changesPolicies = api.validation !== undefined && api.validation !== 'off';
  const weight = changesPolicies ? await policyWeight(tx, scope.domain) : 0;
  if (weight > policyLimit) throw new TooLarge(weight);
  const { created, updated, endpoints, unhandled, replaced } = written;
  const handled = endpoints.filter(({ handler }) => handler !== null).map(({ id }) => id);
  const { bound, warnings: bindingWarnings } = await bindServices(tx, scope.domain, handled, api.bindings);
  const ids = new Map(endpoints.map(({ name, id }) => [name, id]));
  const { collection } = scope;
  const warnings: readonly ImportWarning[] = [
    ...api.warnings,
    ...replaced.map(replacedWarning),
    ...(api.kind === 'bundle' ? unhandled.map(unhandledWarning) : []),
    ...bindingWarnings.map((text) => ({ kind: 'bindings', text })),
    ...scope.warnings.map((text) => ({ kind: 'target', text })),
    ...(await lossWarnings(tx, scope, api, written)),
  ];
  const outcome: ImportOutcome = {
    collection: collection && {
      id: collection.id,
      name: collection.name,
      base_path: collection.base_path,
    },
    created,
    updated,
    endpoints,
    problems: api.problems.map(({ name, handler, message }) => ({
      endpoint_id: (name !== null && ids.get(name)) || null,
      name,
      handler,
      message,
    })),
    warnings: warnings.map(({ text }) => text),
    warning_kinds: warnings.map(({ kind }) => kind),
  };
  return { outcome, bound, isNewCollection: scope.isNewCollection };
}

function busy({ domain }: ImportTarget, cause: unknown): AppError {
  return new AppError(
    'import_busy',
    `Other changes of the domain "${domain}" take too long, another import perhaps; nothing was imported, try again`,
    {},
    { cause },
  );
}

function replacedWarning({ name, file }: ReplacedCode): ImportWarning {
  return {
    kind: 'replaced',
    text: `${name} had code that no import had brought; ${file} has taken its place`,
  };
}

/** Only known here: whether an endpoint without a handler in the bundle keeps code that a user wrote. */
function unhandledWarning({ name, keepsCode }: UnhandledEndpoint): ImportWarning {
  const consequence = keepsCode ? ' and keeps the code it has' : '; a generated one answers 501';
  return { kind: 'unhandled', text: `${name} has no handler in the bundle${consequence}` };
}

async function lossWarnings(
  tx: Store,
  { domain, collection }: ImportScope,
  api: ApiToImport,
  { endpoints, formerTitles }: ImportedRows,
): Promise<readonly ImportWarning[]> {
  // A document may have a new title: then lost operations were imported under the old one.
  const titles = [...new Set([api.title, ...formerTitles])];
  const place = { domain, collectionId: collection?.id ?? null, importedFrom: titles };
  const lost = await endpointsNotAmong(
    tx,
    place,
    endpoints.map(({ id }) => id),
  );
  return lost.map(({ id, name, method, route }) => ({
    kind: 'lost',
    text: `The endpoint "${name}" (${method} ${route}, ${id}) is no longer in the document; it stays until you delete it`,
  }));
}
