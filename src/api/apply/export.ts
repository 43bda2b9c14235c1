/**
 * Writes the installation, or a part of it, as a folder: applied again, it changes nothing. The order of everything is
 * that of names, so that exports of the same are the same.
 */
import { keyOf } from '../../apply/keys.js';
import type {
  CollectionObject,
  DomainObject,
  EndpointObject,
  InstallationObject,
  ScheduleObject,
  ServiceObject,
} from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import { secretsIn } from '../../model/secret-references.js';
import { DEFAULT_ENTRY } from '../../model/source-files.js';
import { LongText } from '../../util/json-text.js';
import { mapInParts, Pauses } from '../../util/pauses.js';
import { sortedMembers } from '../../util/sorted-members.js';
import { isText } from '../../util/text.js';
import { yamlText } from '../../util/yaml-text.js';
import { AnswerTurns } from '../response/answer-turns.js';
import { SourcePaths } from './source-paths.js';
import { type PlacedSource, type SourceReader, SourceTrees } from './source-trees.js';
import type { YamlLists } from './yaml-lists.js';

/** The content of a file of an export. */
export type ExportedFile = string | LongText | Uint8Array;

export interface ExportScope {
  /** Only this domain, with what is in it, and the services that it uses. */
  readonly domain?: string;
  /** Only what belongs to this stack. */
  readonly stack?: string;
}

/** An export may have all code of the installation in memory, until it is sent. */
export const EXPORT_TURNS = new AnswerTurns({ what: 'exports', places: 1, beyond: 1 });

/** The stack of an export of objects of several, or of none. */
const WHOLE = 'installation';

type Members = Record<string, unknown>;

/**
 * Files by their paths.
 * @throws AppError not_found when there is nothing of the domain or the stack
 */
export async function exportedFiles(
  objects: readonly InstallationObject[],
  scope: ExportScope,
  yaml: YamlLists,
  sources: SourceReader,
): Promise<Record<string, ExportedFile>> {
  const pauses = new Pauses();
  const chosen = (
    await mapInParts(chosenObjects(objects, scope), (object) => ({ object, key: keyOf(object) }))
  )
    .sort((left, right) => (left.key < right.key ? -1 : 1))
    .map(({ object }) => object);
  requireSome(chosen, scope);
  const stack = scope.stack ?? onlyStack(chosen) ?? WHOLE;
  const paths = new SourcePaths();
  const files: Record<string, string | Uint8Array> = {};
  const of = <K extends InstallationObject['kind']>(kind: K) =>
    chosen.filter((object): object is Extract<InstallationObject, { kind: K }> => object.kind === kind);
  const services = of('service');
  const places = new Map<EndpointObject, PlacedSource>();
  const isTree = ({ entry, files }: EndpointObject) => entry !== null || files !== null;
  for (const endpoint of of('endpoint').filter((one) => one.code !== null && !isTree(one))) {
    await pauses.here();
    const handler = paths.pathOf(endpoint);
    files[handler] = endpoint.code ?? '';
    places.set(endpoint, { handler, root: '', include: [] });
  }
  const locks = await lockFiles(of('endpoint'), sources);
  for (const { path, content } of locks.values()) files[path] = content;
  const trees = new SourceTrees(['edge.yaml', ...Object.keys(files)], sources);
  for (const endpoint of of('endpoint').filter((one) => one.code !== null && isTree(one))) {
    await pauses.here();
    const { code, entry } = endpoint;
    const contents = await sources.contentsOf(endpoint.files);
    places.set(endpoint, await trees.place({ code: code ?? '', entry: entry ?? DEFAULT_ENTRY, contents }));
  }
  for (const [path, content] of trees.files()) files[path] = content;
  const endpoints = await mapInParts(of('endpoint'), (endpoint) =>
    endpointMembers(endpoint, places.get(endpoint), lockOf(endpoint, locks), stack),
  );
  const secrets = [...new Set(services.flatMap(({ config }) => secretsIn(config)))].sort();
  const lists: Members = {
    ...some(
      'services',
      services.map((service) => serviceMembers(service, stack)),
    ),
    ...some(
      'domains',
      of('domain').map((domain) => domainMembers(domain, stack)),
    ),
    ...some(
      'collections',
      of('collection').map((collection) => collectionMembers(collection, stack)),
    ),
    ...some('endpoints', endpoints),
  };
  const pieces = [yamlText({ stack, ...some('secrets', secrets) })];
  for (const [name, items] of Object.entries(lists as Record<string, readonly Members[]>))
    pieces.push(`${name}:\n`, ...(await yaml.write(items)));
  return { 'edge.yaml': new LongText(pieces), ...files };
}

/** A lock of an export. */
interface LockFile {
  readonly path: string;
  readonly content: Uint8Array;
}

/** The locks of endpoints, by their digests: those of one project have the same one. */
async function lockFiles(
  endpoints: readonly EndpointObject[],
  sources: SourceReader,
): Promise<ReadonlyMap<string, LockFile>> {
  const locks = new Map<string, LockFile>();
  for (const { lock } of endpoints) {
    if (!lock || locks.has(lock.digest)) continue;
    const path = locks.size === 0 ? 'Cargo.lock' : `Cargo-${locks.size + 1}.lock`;
    const content = (await sources.contentsOf({ [path]: lock })).get(path);
    if (content) locks.set(lock.digest, { path, content });
  }
  return locks;
}

function lockOf({ lock }: EndpointObject, locks: ReadonlyMap<string, LockFile>): string | undefined {
  return lock ? locks.get(lock.digest)?.path : undefined;
}

/** A name that nothing has is a mistake: an empty folder would say that nothing should be there. */
function requireSome(chosen: readonly InstallationObject[], { domain, stack }: ExportScope): void {
  if (chosen.length > 0 || (domain === undefined && stack === undefined)) return;
  const names = [
    ...(domain === undefined ? [] : [`the host "${domain}"`]),
    ...(stack === undefined ? [] : [`the stack "${stack}"`]),
  ];
  throw new AppError('not_found', `There is nothing of ${names.join(' and ')}`);
}

function chosenObjects(
  objects: readonly InstallationObject[],
  { domain, stack }: ExportScope,
): InstallationObject[] {
  const owned = objects.filter((object) => stack === undefined || object.stack === stack);
  if (domain === undefined) return owned;
  const inDomain = owned.filter(
    (object) => object.kind !== 'service' && (object.host === domain || isInCollectionOf(object, domain)),
  );
  const used = new Set(
    inDomain.flatMap((object) => (object.kind === 'endpoint' ? Object.values(object.bindings) : [])),
  );
  return [...inDomain, ...owned.filter((object) => object.kind === 'service' && used.has(object.name))];
}

function isInCollectionOf(object: InstallationObject, host: string): boolean {
  return object.kind === 'endpoint' && object.collection_host === host;
}

/** The stack to which all belong that belong to one. */
function onlyStack(objects: readonly InstallationObject[]): string | undefined {
  const stacks = new Set(objects.flatMap(({ stack }) => stack ?? []));
  const [only] = stacks;
  return stacks.size === 1 ? only : undefined;
}

function domainMembers({ host, name, ...others }: DomainObject, stack: string): Members {
  return { host, ...owner(others, stack), ...unless('name', name, host), ...common(others) };
}

function collectionMembers({ host, name, base_path, ...others }: CollectionObject, stack: string): Members {
  return { host, name, ...owner(others, stack), ...unless('base_path', base_path, null), ...common(others) };
}

async function endpointMembers(
  endpoint: EndpointObject,
  source: PlacedSource | undefined,
  lock: string | undefined,
  stack: string,
): Promise<Members> {
  const { host, method, route, path, name, collection, collection_host, running } = endpoint;
  const place =
    collection === null ? { route } : { collection, ...(host === '*' && { collection_host }), path };
  return {
    host,
    method,
    ...place,
    ...owner(endpoint, stack),
    ...unless('name', name, `${method} ${route}`),
    ...(source && {
      handler: source.handler,
      ...unless('root', source.root, ''),
      ...some('include', source.include),
    }),
    ...unless('edition', endpoint.edition, null),
    ...unless('running', running, source !== undefined),
    ...common(endpoint),
    // Said also where there are none: else those of a Cargo.toml would count.
    ...unless('dependencies', endpoint.dependencies ?? (source ? {} : null), null),
    ...unless('lock', lock, undefined),
    ...unless('limits', endpoint.limits, null),
    ...someMembers('bindings', endpoint.bindings),
    ...some('schedules', await mapInParts(endpoint.schedules, scheduleMembers)),
  };
}

function serviceMembers(
  { name, service_type, config, enabled, domains, active, ...others }: ServiceObject,
  stack: string,
): Members {
  return {
    name,
    service_type,
    ...owner(others, stack),
    // It is stored as it was sent; all else is in the order of names already.
    config: sortedMembers(config),
    ...unless('enabled', enabled, true),
    ...unless('active', active, enabled),
    ...some('domains', domains),
  };
}

function scheduleMembers({ cron, timezone, enabled, method, path, headers, body }: ScheduleObject): Members {
  const bytes = body === null ? null : Buffer.from(body, 'base64');
  return {
    cron,
    ...unless('timezone', timezone, 'UTC'),
    ...unless('enabled', enabled, true),
    method,
    path,
    ...someMembers('headers', headers),
    ...(bytes !== null && (isText(bytes) ? { body: bytes.toString() } : { body_base64: body })),
  };
}

function common({
  description,
  enabled,
  policies,
  variables,
}: Pick<DomainObject, 'description' | 'enabled' | 'policies' | 'variables'>): Members {
  return {
    ...unless('description', description, null),
    ...unless('enabled', enabled, true),
    ...unless('policies', policies, null),
    ...someMembers('variables', variables),
  };
}

function owner({ stack: own }: Pick<DomainObject, 'stack'>, stack: string): Members {
  return own === stack ? {} : { stack: own };
}

function unless(name: string, value: unknown, usual: unknown): Members {
  return value === usual ? {} : { [name]: value };
}

function some(name: string, list: readonly unknown[]): Members {
  return list.length === 0 ? {} : { [name]: list };
}

function someMembers(name: string, map: Readonly<Record<string, unknown>>): Members {
  return Object.keys(map).length === 0 ? {} : { [name]: map };
}
