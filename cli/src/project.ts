/** A folder with edge.yaml: what it says of endpoints and their handlers. */
import { readFileSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { EDGE_SCHEMA } from './assets.js';
import { CliError, UsageError } from './errors.js';
import { filePathProblem } from './generated/file-paths.js';
import { filePatternProblem } from './generated/file-patterns.js';

export const PROJECT_FILE = 'edge.yaml';
/** Names of stacks, as the API takes them. */
const STACK = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'];

/** A crate as in a Cargo.toml. */
export type Crate = string | Readonly<Record<string, unknown>>;

export interface ProjectEndpoint {
  readonly host: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'PATCH';
  readonly route: string;
  /** The collection that it is in: `edge apply` makes such endpoints. */
  readonly collection: string | undefined;
  readonly name: string;
  /** The path of the handler, and as people write it: relative to edge.yaml. */
  readonly handler: string;
  readonly shown: string;
  /** The folder that paths of its source are relative to, itself relative to that of edge.yaml; empty: this one. */
  readonly root: string;
  /** Patterns of files of its source besides those that it names. */
  readonly include: readonly string[];
  /** Undefined: those of its Cargo.toml. */
  readonly dependencies: Readonly<Record<string, Crate>> | undefined;
  /** Null: that of its Cargo.toml, or the usual one. */
  readonly edition: string | null;
  /** The path of its Cargo.lock; null: that of its Cargo.toml, or none. */
  readonly lock: string | null;
  /** The stack that it belongs to when it is made; null: none. */
  readonly stack: string | null;
}

export interface Project {
  readonly folder: string;
  readonly file: string;
  readonly stack: string | null;
  /** Hosts of its domains, and the stacks that these belong to when they are made. */
  readonly domains: ReadonlyMap<string, string | null>;
  readonly endpoints: readonly ProjectEndpoint[];
}

/** The project of a folder, of a file in it, or of a folder above; undefined: there is none. */
export async function findProject(path: string): Promise<Project | undefined> {
  const from = resolve(path);
  const stat = statSync(from, { throwIfNoEntry: false });
  if (!stat) throw new UsageError(`There is no ${path}`);
  const folder = folderWithProject(stat.isDirectory() ? from : dirname(from));
  return folder === undefined ? undefined : readProject(folder);
}

/** The folder itself, or the nearest one above it, that has an edge.yaml. */
export function folderWithProject(from: string): string | undefined {
  for (let folder = from; ; folder = dirname(folder)) {
    if (statSync(join(folder, PROJECT_FILE), { throwIfNoEntry: false })) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** @throws UsageError when there is none */
export async function requireProject(path: string): Promise<Project> {
  const project = await findProject(path);
  if (project) return project;
  throw new UsageError(
    `There is no ${PROJECT_FILE} in ${resolve(path)}, or above it`,
    '`edge init` makes one.',
  );
}

/** Reads a project. @throws CliError that says where the file is wrong */
export async function readProject(folder: string): Promise<Project> {
  const file = join(folder, PROJECT_FILE);
  const { parseDocument } = await import('yaml');
  const document = parseDocument(textOf(file));
  const [error] = document.errors;
  if (error) throw invalid(file, error.message);
  const content: unknown = document.toJS({ maxAliasCount: 100 }) ?? {};
  if (!isRecord(content)) throw invalid(file, 'it must have names and values');
  const known = knownMembers();
  requireKnown(file, '', content, known.file);
  const { stack: given, endpoints = [], collections = [], domains = [] } = content;
  const stack = ownerOf(file, 'stack', given, null);
  if (!Array.isArray(domains)) throw invalid(file, 'domains must be a list');
  if (!Array.isArray(endpoints)) throw invalid(file, 'endpoints must be a list');
  if (!Array.isArray(collections)) throw invalid(file, 'collections must be a list');
  for (const [at, one] of endpoints.entries())
    if (isRecord(one)) requireKnown(file, `endpoints[${at}].`, one, known.endpoint);
  return {
    folder,
    file,
    stack,
    domains: new Map(
      domains.flatMap((one: unknown, at) => {
        const host = isRecord(one) && typeof one['host'] === 'string' ? one['host'].toLowerCase() : undefined;
        if (!isRecord(one) || host === undefined) throw invalid(file, `domains[${at}].host must be a text`);
        return [[host, ownerOf(file, `domains[${at}].stack`, one['stack'], stack)] as const];
      }),
    ),
    endpoints: endpoints
      .map((one: unknown, at) => endpointOf(folder, file, one, `endpoints[${at}]`, collections, stack))
      .filter((endpoint) => endpoint !== undefined),
  };
}

/** @returns undefined for one without code, which there is nothing to deploy of */
function endpointOf(
  folder: string,
  file: string,
  value: unknown,
  place: string,
  collections: readonly unknown[],
  stack: string | null,
): ProjectEndpoint | undefined {
  if (!isRecord(value)) throw invalid(file, `${place} must have names and values`);
  const text = (name: string): string => {
    const entry = value[name];
    if (typeof entry === 'string' && entry !== '') return entry;
    throw invalid(file, `${place}.${name} must be a text`);
  };
  const method = text('method').toUpperCase();
  if (!METHODS.includes(method)) throw invalid(file, `${place}.method must be one of ${METHODS.join(', ')}`);
  const host = text('host').toLowerCase();
  const collection = value['collection'] === undefined ? undefined : text('collection');
  const member = collection === undefined ? 'route' : 'path';
  const path = text(member);
  if (!path.startsWith('/')) throw invalid(file, `${place}.${member} must begin with /`);
  const route = collection === undefined ? path : joined(basePathOf(collections, host, collection), path);
  if (value['handler'] === undefined) return undefined;
  const handler = resolve(folder, text('handler'));
  const { name = `${method} ${route}`, dependencies, edition = null, root, include = [] } = value;
  if (root !== undefined && typeof root !== 'string') throw invalid(file, `${place}.root must be a text`);
  const wrongRoot = root === undefined ? undefined : filePathProblem(root);
  if (wrongRoot !== undefined) throw invalid(file, `${place}.root: ${wrongRoot}`);
  if (!Array.isArray(include)) throw invalid(file, `${place}.include must be a list of paths`);
  for (const pattern of include as readonly unknown[]) {
    const problem = typeof pattern === 'string' ? filePatternProblem(pattern) : 'must be a text';
    if (problem !== undefined) throw invalid(file, `${place}.include: ${String(pattern)} ${problem}`);
  }
  if (typeof name !== 'string') throw invalid(file, `${place}.name must be a text`);
  if (edition !== null && typeof edition !== 'string')
    throw invalid(file, `${place}.edition must be a text: write "${String(edition)}" with quotation marks`);
  if (dependencies !== undefined && !isRecord(dependencies))
    throw invalid(file, `${place}.dependencies must have names and versions`);
  return {
    ...{ host, method: method as ProjectEndpoint['method'], route, collection, name, handler },
    ...{ shown: relative(folder, handler), root: root ?? '', include },
    dependencies: dependencies as Readonly<Record<string, Crate>> | undefined,
    ...{ edition, lock: value['lock'] === undefined ? null : resolve(folder, text('lock')) },
    stack: ownerOf(file, `${place}.stack`, value['stack'], stack),
  };
}

/** @throws CliError when it cannot be read */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (thrown) {
    throw new CliError(`${file} cannot be read: ${(thrown as Error).message}`, { code: 'invalid_project' });
  }
}

/** The members that the JSON Schema has, of the file and of its endpoints. */
function knownMembers(): { readonly file: readonly string[]; readonly endpoint: readonly string[] } {
  const { properties } = JSON.parse(readFileSync(EDGE_SCHEMA, 'utf8')) as {
    readonly properties: Readonly<Record<string, object>> & {
      readonly endpoints: { readonly items: { readonly properties: object } };
    };
  };
  return { file: Object.keys(properties), endpoint: Object.keys(properties.endpoints.items.properties) };
}

/** A mistyped member would count as left out. */
function requireKnown(file: string, place: string, value: object, known: readonly string[]): void {
  const unknown = Object.keys(value).find((name) => !known.includes(name));
  if (unknown !== undefined)
    throw invalid(file, `${place}${unknown} is not accepted; possible are ${known.join(', ')}`);
}

/** An object belongs to the stack of the folder, unless it says to which else, or null for none. */
function ownerOf(file: string, place: string, value: unknown, stack: string | null): string | null {
  if (value === undefined) return stack;
  if (value === null || (typeof value === 'string' && STACK.test(value))) return value;
  throw invalid(file, `${place} must be letters, digits, ".", "_" and "-", at most 63`);
}

/** The route as the server joins it: a path that begins with the base path is the route. */
function joined(basePath: string, path: string): string {
  return path === basePath || path.startsWith(`${basePath}/`) ? path : `${basePath}${path}`;
}

/** The base path of a collection that the same file describes; empty for others, whose base path is not known here. */
function basePathOf(collections: readonly unknown[], host: string, name: string): string {
  const entry = collections.find(
    (one) => isRecord(one) && one['name'] === name && String(one['host']).toLowerCase() === host,
  );
  const basePath = isRecord(entry) ? entry['base_path'] : undefined;
  return typeof basePath === 'string' ? basePath.replace(/\/$/, '') : '';
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function invalid(file: string, message: string): CliError {
  return new CliError(`${file}: ${message}`, { code: 'invalid_project' });
}
