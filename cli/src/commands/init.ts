/** `edge init`: a folder with edge.yaml, a handler, and a Cargo project; or what a folder lacks of that. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { addToCargoToml, addToConfig } from '../add-to-cargo.js';
import { EDGE_SCHEMA, readTemplate, type Template, templateNames } from '../assets.js';
import {
  CARGO_CONFIG,
  cargoConfig,
  cargoToml,
  givenCrates,
  type Program,
  packageName,
  type Registry,
  registryNotes,
  registryOf,
} from '../cargo-project.js';
import { UsageError } from '../errors.js';
import { PROJECT_FILE } from '../project.js';
import type { CommonOptions, Session } from '../session.js';
import { safeLine } from '../text.js';

interface InitOptions extends CommonOptions {
  readonly template: string;
  readonly host: string;
  readonly existing?: boolean;
}

/** Editors complete and check edge.yaml with it. */
const SCHEMA_FILE = 'edge.schema.json';
const CARGO_TOML = 'Cargo.toml';
const CARGO_HEAD =
  '# The gateway compiles the handlers with the edition and the crates of this file, and with the lock beside it.';

export async function init(session: Session, options: InitOptions, folder = '.'): Promise<void> {
  const { template, host, existing } = options;
  requireHost(host);
  const names = templateNames();
  if (template === 'help') {
    session.out.result(names, () => session.out.line(names.join('\n')));
    return;
  }
  if (!names.includes(template))
    throw new UsageError(`There is no template ${template}`, `There are: ${names.join(', ')}.`);
  const target = resolve(folder);
  const registry = registryOf(session);
  const made = madeOf(packageName(basename(target)), host, readTemplate(template), registry);
  const there = Object.keys(made.files).filter((file) => existsSync(join(target, file)));
  if (there[0] !== undefined && !existing)
    throw new UsageError(
      `${join(target, there[0])} exists; nothing was written`,
      'Choose another folder; or --existing keeps what is there, and writes what is missing.',
    );
  const { files, added, notes } = existing
    ? await missingOf(target, made, registry)
    : { ...made, added: [], notes: [] };
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(target, file)), { recursive: true });
    writeFileSync(join(target, file), content, { flag: added.includes(file) ? 'w' : 'wx' });
  }
  const where = relative('.', target) || '.';
  const paths = Object.keys(files);
  const result = { folder: target, files: paths.filter((file) => !added.includes(file)), added };
  session.out.result({ ...result, registry: registry.index }, () => {
    if (result.files.length > 0) session.out.line(safeLine(`Made in ${where}: ${result.files.join(', ')}`));
    if (added.length > 0) session.out.line(safeLine(`Added to: ${added.join(', ')}`));
    if (paths.length === 0) session.out.line(safeLine(`Nothing is missing in ${where}`));
    session.out.line(safeLine(`Next: ${where === '.' ? '' : `cd ${where} && `}edge dev`));
  });
  for (const note of [...notes, ...registryNotes(registry)]) session.out.note(safeLine(note));
}

/** Requires a host as the API takes it. @throws UsageError */
function requireHost(host: string): void {
  if (host === '*' || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host)) return;
  throw new UsageError(`${host} is no host`, 'Such as api.example.com, or "*" for all hosts.');
}

/** What a new folder has. */
interface Made {
  readonly files: Readonly<Record<string, string>>;
  readonly program: Program;
  readonly isAsync: boolean;
}

function madeOf(name: string, host: string, { endpoints, pools, code }: Template, registry: Registry): Made {
  const [first] = endpoints;
  const program = (first?.name ?? name).replace(/\W+/g, '_');
  const path = `src/${program}.rs`;
  const isAsync = /handler_(loop|ws)_async/.test(code);
  const programs = [{ name: program, path }];
  return {
    program: { name: program, path },
    isAsync,
    files: {
      [PROJECT_FILE]: projectFile(name, host, path, endpoints, pools),
      [path]: code,
      [CARGO_TOML]: cargoToml(CARGO_HEAD, { name, edition: '2024', programs, crates: givenCrates(isAsync) }),
      [CARGO_CONFIG]: cargoConfig(registry),
      [SCHEMA_FILE]: readFileSync(EDGE_SCHEMA, 'utf8'),
      '.gitignore': 'target/\n',
    },
  };
}

interface Missing {
  /** Contents of files that are new, or get something more. */
  readonly files: Readonly<Record<string, string>>;
  /** Those that get something more. */
  readonly added: readonly string[];
  /** What their authors have to add themselves. */
  readonly notes: readonly string[];
}

/** What a folder lacks: a project that is there names its own handlers. */
async function missingOf(
  target: string,
  { files, program, isAsync }: Made,
  registry: Registry,
): Promise<Missing> {
  const has = (file: string) => existsSync(join(target, file));
  const keepsHandlers = has(PROJECT_FILE);
  const missing = Object.entries(files).filter(
    ([file]) => !has(file) && !(file === program.path && keepsHandlers),
  );
  const added: [file: string, content: string][] = [];
  const notes: string[] = [];
  for (const [file, add] of [
    [CARGO_TOML, (text: string) => addToCargoToml(text, isAsync, keepsHandlers ? undefined : program)],
    [CARGO_CONFIG, (text: string) => addToConfig(text, registry)],
  ] as const) {
    if (!has(file)) continue;
    const { text, missing: lines } = await add(readFileSync(join(target, file), 'utf8'));
    if (text !== undefined) added.push([file, text]);
    if (lines !== undefined) notes.push(`${file} was left as it is; add to it:\n${lines}`);
  }
  const all = Object.fromEntries([...missing, ...added]);
  return { files: all, added: added.map(([file]) => file), notes };
}

function projectFile(
  name: string,
  host: string,
  file: string,
  endpoints: Template['endpoints'],
  pools: Template['pools'],
): string {
  const bound = pools.map(
    ({ pool_id, service_type }) =>
      `# The handler uses a service of the type ${service_type} as ${pool_id}: \`edge service create\`, \`edge service bind\`.\n` +
      `# For \`edge apply\`, an endpoint says so, too: bindings: {${pool_id}: NAME}\n`,
  );
  const items = endpoints.map(
    ({ name: endpoint, method, path }) =>
      `  - host: ${text(host)}\n    method: ${method}\n    route: ${text(path)}\n    name: ${text(endpoint)}\n` +
      `    handler: ${file}\n`,
  );
  // That of the machine is no folder's own: others have endpoints there, too. All hosts are no domain.
  const domains = ['localhost', '*'].includes(host) ? '' : `domains:\n  - host: ${text(host)}\n`;
  return `# yaml-language-server: $schema=${SCHEMA_FILE}\nstack: ${text(name)}\n${domains}${bound.join('')}endpoints:\n${items.join('')}`;
}

/** A text of YAML; JSON is YAML. */
function text(value: string): string {
  return /^[A-Za-z][\w.-]*$/.test(value) ? value : JSON.stringify(value);
}
