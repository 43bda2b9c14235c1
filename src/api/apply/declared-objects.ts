/** The objects that a folder declares: every list item is validated by itself, so that all problems are reported. */
import { isDeepStrictEqual } from 'node:util';
import type { Static } from '@sinclair/typebox';
import type { DeclaredObject } from '../../apply/changes.js';
import { collectionKey, endpointKey, keyOf, titleOf } from '../../apply/keys.js';
import { someOrNull, sortedSchedules } from '../../apply/normal.js';
import type {
  CollectionObject,
  DomainObject,
  EndpointObject,
  InstallationObject,
  ServiceObject,
} from '../../apply/objects.js';
import { AppError } from '../../errors.js';
import { type Folder, sourceName, type ValueAtLine } from '../../import/folder/folder.js';
import { namedSource } from '../../import/folder/read-sources.js';
import { completedConfig, type OpenedService } from '../../lifecycle/stored-services.js';
import { DEPENDENCIES_SCHEMA, type Dependencies } from '../../model/crates.js';
import { textProblem } from '../../model/formats.js';
import { type Check, describeProblem } from '../../model/problems.js';
import { joinRoute, normalizeBasePath, RouteSyntaxError } from '../../model/route-pattern.js';
import { checkOf } from '../../model/schema-check.js';
import { type Edition, normalEdition, normalEntry, sourceProblem } from '../../model/source-files.js';
import { mapInParts, Pauses } from '../../util/pauses.js';
import {
  FILE_LISTS,
  type FileCollectionInput,
  type FileDomainInput,
  type FileEndpointInput,
  FileHead,
  type FileList,
  type FileServiceInput,
} from './edge-file.js';
import { scheduleObject } from './schedules.js';

/** What is there, as far as a folder refers to it. */
export interface KnownObjects {
  readonly collections: readonly CollectionObject[];
  readonly services: readonly OpenedService[];
  readonly secrets: ReadonlySet<string>;
}

/** An object with what is known of its item in the file. */
export interface DeclaredItem extends DeclaredObject, Pick<ValueAtLine, 'members'> {
  /** What is wrong with the files of its source, each with its place. It counts where the source is another one. */
  readonly sourceProblems: readonly string[];
}

export interface DeclaredObjects {
  readonly stack: string;
  readonly declared: readonly DeclaredItem[];
  /** Configs of services with the secrets that are stored, by name. */
  readonly configs: ReadonlyMap<string, object>;
  /** All that is wrong, each with its place. */
  readonly problems: readonly string[];
}

const checkHead = checkOf(FileHead);
const checkDependencies = checkOf(DEPENDENCIES_SCHEMA);
const CHECKS = Object.fromEntries(
  Object.entries(FILE_LISTS).map(([name, schema]) => [name, checkOf(schema)]),
) as Readonly<Record<FileList, Check>>;

/** Reads objects from the lists of a folder. */
class ObjectReader {
  readonly declared: DeclaredItem[] = [];
  readonly configs = new Map<string, object>();
  readonly problems: string[] = [];
  readonly #basePaths: Map<string, string | null>;
  readonly #seen = new Map<string, string>();

  constructor(
    private readonly folder: Folder,
    private readonly known: KnownObjects,
    private readonly stack: string,
  ) {
    this.#basePaths = new Map(known.collections.map((object) => [keyOf(object), object.base_path]));
  }

  async read(): Promise<void> {
    await this.#each<FileDomainInput>('domains', (input) => this.#domain(input));
    await this.#each<FileCollectionInput>('collections', (input) => this.#collection(input));
    await this.#each<FileServiceInput>('services', (input) => this.#service(input));
    await this.#each<FileEndpointInput>('endpoints', (input) => this.#endpoint(input));
  }

  async #each<T extends { stack?: string | null }>(
    list: FileList,
    objectOf: (input: T) => InstallationObject | Promise<InstallationObject>,
  ): Promise<void> {
    const pauses = new Pauses();
    for (const [at, { value, place, members }] of (this.folder.lists[list] ?? []).entries()) {
      await pauses.here();
      const problem = CHECKS[list](value);
      if (problem) {
        const [member = ''] = problem.path;
        this.problems.push(`${members[member] ?? place}: ${describeProblem(`${list}.${at}`, problem)}`);
        continue;
      }
      try {
        const input = value as T;
        const object = await objectOf(input);
        const key = keyOf(object);
        const twin = this.#seen.get(key);
        if (twin !== undefined)
          throw new AppError('invalid_input', `the ${titleOf(object)} is at ${twin} too`);
        this.#seen.set(key, place);
        const named = list === 'endpoints' ? namedSource(input) : undefined;
        const sourceProblems = (named && this.folder.sources.get(sourceName(named))?.problems) ?? [];
        this.declared.push({ object, place, members, sourceProblems, isClaimed: input.stack === undefined });
      } catch (thrown) {
        if (!(thrown instanceof AppError)) throw thrown;
        this.problems.push(
          `${memberPlace(thrown.message, members) ?? place}: ${list}.${at}: ${thrown.message}`,
        );
      }
    }
  }

  #domain({
    host: given,
    name,
    description,
    enabled,
    policies,
    variables,
    stack,
  }: FileDomainInput): DomainObject {
    const host = given.toLowerCase();
    return {
      kind: 'domain',
      host,
      name: name ?? host,
      description: description ?? null,
      enabled: enabled ?? true,
      policies: someOrNull(policies),
      variables: variables ?? {},
      stack: this.#owner(stack),
    };
  }

  #collection(input: FileCollectionInput): CollectionObject {
    const { host, name, description, base_path, enabled, policies, variables, stack } = input;
    const object: CollectionObject = {
      kind: 'collection',
      host: host.toLowerCase(),
      name,
      description: description ?? null,
      base_path: normalizeBasePath(base_path ?? ''),
      enabled: enabled ?? true,
      policies: someOrNull(policies),
      variables: variables ?? {},
      stack: this.#owner(stack),
    };
    this.#basePaths.set(keyOf(object), object.base_path);
    return object;
  }

  #service({ name, service_type, config, enabled, domains, active, stack }: FileServiceInput): ServiceObject {
    const before = this.known.services.find(({ object }) => object.name === name);
    if (before && before.object.service_type !== service_type)
      throw invalid(
        'service_type',
        `must stay "${before.object.service_type}": the type of a service cannot change`,
      );
    // What is stored may have been accepted by an earlier release only.
    const isUnchanged = before && isDeepStrictEqual(before.object.config, config);
    const { shown, whole } = isUnchanged
      ? { shown: before.object.config, whole: before.config }
      : completedConfig(service_type, config, before);
    this.configs.set(name, whole);
    const isEnabled = enabled ?? true;
    if (active === true && !isEnabled) throw invalid('active', 'must not be true: the service is disabled');
    return {
      kind: 'service',
      name,
      service_type,
      // A default that a later release has added is no change.
      config: before && isDeepStrictEqual(shown, completeAsStored(before)) ? before.object.config : shown,
      enabled: isEnabled,
      domains: [...new Set((domains ?? []).map((host) => host.toLowerCase()))].sort(),
      active: active ?? isEnabled,
      stack: this.#owner(stack),
    };
  }

  async #endpoint(input: FileEndpointInput): Promise<EndpointObject> {
    const host = input.host.toLowerCase();
    const { method, collection } = input;
    const place = this.#placeOf(input, host);
    const { code, entry, files, lock } = this.#source(input);
    const cargo = this.#cargo(input);
    const { dependencies = cargo?.dependencies, edition = cargo?.edition } = input;
    if (input.running === true && code === null)
      throw invalid('running', 'must not be true without a handler');
    const object = {
      kind: 'endpoint',
      host,
      method,
      ...place,
      name: input.name ?? `${method} ${place.route}`,
      collection: collection ?? null,
      description: input.description ?? null,
      enabled: input.enabled ?? true,
      ...{ code, edition: normalEdition(edition), entry, files },
      dependencies: someOrNull(dependencies),
      lock,
      limits: someOrNull(input.limits),
      policies: someOrNull(input.policies),
      variables: input.variables ?? {},
      bindings: input.bindings ?? {},
      running: input.running ?? code !== null,
      stack: this.#owner(input.stack),
    } as const;
    endpointKey(host, method, object.route);
    const schedules = await mapInParts(input.schedules ?? [], (schedule) => scheduleObject(object, schedule));
    return { ...object, schedules: await sortedSchedules(schedules) };
  }

  /** Route and path of an endpoint, and the domain of its collection. */
  #placeOf(
    { route, path, collection, collection_host: given }: FileEndpointInput,
    host: string,
  ): Pick<EndpointObject, 'route' | 'path' | 'collection_host'> {
    if (collection === undefined) {
      if (route === undefined || path !== undefined)
        throw invalid('route', 'is needed, and no path, because there is no collection');
      if (given !== undefined) throw invalid('collection_host', 'is only for an endpoint with a collection');
      return { route, path: route, collection_host: null };
    }
    if (path === undefined || route !== undefined)
      throw invalid('path', 'is needed, and no route, because there is a collection');
    const isForAll = host === '*';
    if (isForAll !== (given !== undefined))
      throw invalid(
        'collection_host',
        isForAll
          ? 'is needed, because the host is "*"'
          : 'is only for the host "*": a collection is of the same host',
      );
    const collection_host = (given ?? host).toLowerCase();
    const basePath = this.#basePaths.get(collectionKey(collection_host, collection));
    if (basePath === undefined)
      throw invalid(
        'collection',
        `there is no collection "${collection_host}/${collection}", neither here nor in the installation`,
      );
    try {
      return { route: joinRoute(basePath, path), path, collection_host };
    } catch (thrown) {
      if (!(thrown instanceof RouteSyntaxError)) throw thrown;
      throw invalid('path', `with the base path ${basePath ?? '/'} of the collection, it ${thrown.message}`);
    }
  }

  /** Of a handler that is one file, the path is none of its own, unless it is said what it is relative to. */
  #source(input: FileEndpointInput): Pick<EndpointObject, 'code' | 'entry' | 'files' | 'lock'> {
    const { handler } = input;
    const named = namedSource(input);
    if (handler === undefined || !named) return { code: null, entry: null, files: null, lock: null };
    const source = this.folder.sources.get(sourceName(named));
    if (!source) throw invalid('handler', `there is no file ${handler} in the folder`);
    const wrongText = textProblem(source.code);
    if (wrongText !== undefined) throw invalid('handler', `the file ${handler} ${wrongText}`);
    const { files, lock } = source;
    const entry = files === null && input.root === undefined ? null : normalEntry(source.entry);
    const problem = sourceProblem({ entry, files });
    if (problem !== undefined) throw invalid('handler', problem);
    return { code: source.code, entry, files, lock };
  }

  /** What its Cargo.toml says. */
  #cargo(
    input: FileEndpointInput,
  ): { readonly dependencies: Dependencies; readonly edition: Edition } | undefined {
    const named = namedSource(input);
    const { cargo, cargoProblems = [] } = (named && this.folder.sources.get(sourceName(named))) ?? {};
    if (cargoProblems.length > 0) throw new AppError('invalid_input', cargoProblems.join('\n'));
    if (!cargo) return undefined;
    const problem = checkDependencies(cargo.dependencies);
    if (problem) throw new AppError('invalid_input', describeProblem('Cargo.toml: dependencies', problem));
    return { dependencies: cargo.dependencies as Dependencies, edition: cargo.edition as Edition };
  }

  #owner(stack: string | null | undefined): string | null {
    return stack === undefined ? this.stack : stack;
  }
}

/** @throws AppError invalid_folder when not even the stack is known */
export async function declaredObjects(folder: Folder, known: KnownObjects): Promise<DeclaredObjects> {
  const head = Object.fromEntries(folder.head.map(({ name, value }) => [name, value]));
  const problems: string[] = [];
  const problem = checkHead(head);
  if (problem) {
    const place = folder.head.find(({ name }) => name === problem.path[0])?.place ?? 'edge.yaml:1';
    problems.push(`${place}: ${describeProblem('', problem).replace(/^\./, '')}`);
  }
  const { stack, secrets = [] } = head as Partial<Static<typeof FileHead>>;
  if (!problem) {
    const place = folder.head.find(({ name }) => name === 'secrets')?.place ?? '';
    const missing = secrets.filter((name) => !known.secrets.has(name));
    if (missing.length > 0)
      problems.push(`${place}: secrets: ${missing.join(', ')} must be set first (PUT /api/secrets/NAME)`);
  }
  const reading = new ObjectReader(folder, known, String(stack));
  await reading.read();
  const { declared, configs } = reading;
  return { stack: String(stack), declared, configs, problems: [...problems, ...reading.problems] };
}

/** The config of a stored service with the defaults of today; as it is, when it would not be accepted any more. */
function completeAsStored(before: OpenedService): object {
  try {
    return completedConfig(before.object.service_type, before.object.config, before).shown;
  } catch (thrown) {
    if (thrown instanceof AppError) return before.object.config;
    throw thrown;
  }
}

/** Where the member stands that a message begins with. */
function memberPlace(message: string, members: ValueAtLine['members']): string | undefined {
  const name = /^(\w+)/.exec(message)?.[1];
  return name !== undefined && Object.hasOwn(members, name) ? members[name] : undefined;
}

function invalid(member: string, problem: string): AppError {
  return new AppError('invalid_input', `${member}: ${problem}`);
}
