/**
 * The import rules: which folder of `src` may import which. The table is in layers, lowest first, and a folder may only
 * name folders above it in the table, so there can be no cycle between folders. The command line and the web UI are
 * packages of their own: they import their own files and the packages that they name. `npm run check` runs this.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fail, ROOT } from './prepare.mjs';

/** `src` means the files in `src` itself: `config.ts`, `settings.ts` and `errors.ts`. */
const MAY_IMPORT = {
  // Types and constants that are made from those of Rust.
  contracts: [],
  wire: ['contracts'],
  settings: [],
  src: ['settings'],
  util: ['src'],
  model: ['src', 'util', 'contracts'],
  apply: ['src', 'util', 'model'],
  secrets: ['src', 'util'],
  bootstrap: ['src', 'util', 'model'],
  http: ['src', 'util'],
  metrics: ['src', 'util'],
  webhooks: ['util'],
  artifacts: ['src', 'util'],
  sandbox: ['src', 'util', 'contracts', 'bootstrap'],
  store: ['src', 'util', 'model', 'apply'],
  queues: ['src', 'util', 'store'],
  reconcile: ['src', 'util', 'store'],
  internal: ['src', 'util', 'model', 'store', 'reconcile'],
  import: ['src', 'util', 'model'],
  build: ['src', 'util', 'contracts', 'model', 'bootstrap', 'sandbox', 'artifacts'],
  threads: ['src', 'util', 'model'],
  lifecycle: [
    ...['src', 'util', 'model', 'apply', 'secrets', 'store', 'queues', 'reconcile', 'internal', 'artifacts'],
  ],
  api: [
    ...['src', 'util', 'model', 'secrets', 'http', 'metrics', 'artifacts', 'sandbox', 'store', 'queues'],
    ...['reconcile', 'internal', 'import', 'threads', 'lifecycle', 'webhooks', 'apply'],
  ],
  gateway: [
    ...['src', 'util', 'contracts', 'model', 'metrics', 'artifacts', 'sandbox', 'store', 'reconcile'],
    ...['internal', 'threads'],
  ],
  actors: [
    ...['src', 'util', 'contracts', 'model', 'wire', 'secrets', 'bootstrap', 'sandbox', 'store'],
    ...['reconcile', 'internal'],
  ],
  // A driver knows its backend, and nothing of the state of this product.
  'actors/drivers': ['src', 'util', 'model', 'wire', 'actors'],
  rights: [
    ...['src', 'util', 'contracts', 'model', 'secrets', 'bootstrap', 'artifacts', 'sandbox', 'internal'],
    'actors',
  ],
  up: ['src', 'util', 'model', 'bootstrap', 'sandbox', 'store'],
  jobs: [
    ...['src', 'util', 'model', 'secrets', 'bootstrap', 'metrics', 'artifacts', 'sandbox', 'store', 'queues'],
    ...['reconcile', 'internal', 'build', 'lifecycle', 'webhooks', 'apply', 'rights'],
  ],
  processes: [
    ...['src', 'util', 'model', 'secrets', 'bootstrap', 'metrics', 'artifacts', 'sandbox', 'store', 'queues'],
    ...['reconcile', 'internal', 'import', 'threads', 'api', 'gateway', 'actors', 'actors/drivers', 'rights'],
    'up',
  ],
};
/** SQL, and so these packages, belong in `src/store`. */
const SQL_PACKAGES = { knex: ['store'], pg: ['store'] };
/** Packages of their own; with the packages that each loads only when it needs them: it starts quickly. */
const WORKSPACES = { cli: ['smol-toml', 'undici', 'yaml'], ui: [] };
/** What all resources of the API share, also lowest first. */
const SHARED = ['access', 'request', 'response', 'route', 'pages'];
/**
 * The same for the folders of src/api: which names which others. A folder that is not here is a resource, and names the
 * shared ones. Files in src/api itself put all of them together.
 */
const API_MAY_IMPORT = {
  access: [],
  request: [],
  response: [],
  route: ['access', 'request', 'response'],
  pages: ['access', 'route'],
  middleware: SHARED,
  policies: SHARED,
  services: SHARED,
  jobs: SHARED,
  variables: [...SHARED, 'services'],
  bindings: [...SHARED, 'services'],
  domains: [...SHARED, 'policies'],
  collections: [...SHARED, 'policies'],
  endpoints: [...SHARED, 'policies'],
  lifecycle: [...SHARED, 'jobs'],
  imports: [...SHARED, 'services'],
  apply: [
    ...[...SHARED, 'policies', 'services', 'jobs', 'variables'],
    ...['bindings', 'domains', 'collections', 'endpoints'],
  ],
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = [...orderProblems(), ...orderProblems(API_MAY_IMPORT), ...importProblems(ROOT)];
  if (problems.length > 0) {
    fail(`Imports against the rules of scripts/import-rules.mjs:\n${problems.join('\n')}`);
  }
}

/** The folders of a table that name a folder that is not above them, a line each. */
export function orderProblems(table = MAY_IMPORT) {
  const folders = Object.keys(table);
  return folders.flatMap((folder, at) =>
    table[folder]
      .filter((name) => !folders.slice(0, at).includes(name))
      .map((name) => `  ${folder} names ${name}, which is not above it in the table`),
  );
}

/** The imports of a checkout that violate the rules, a line each. */
export function importProblems(root) {
  const workspaces = Object.keys(WORKSPACES).map((name) => `${name}/src`);
  const folders = ['src', 'jobs', ...workspaces.filter((folder) => existsSync(join(root, folder)))];
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true })
      .filter((name) => /\.tsx?$/.test(name))
      .flatMap((name) => problemsOf(root, join(folder, name))),
  );
}

function problemsOf(root, file) {
  const from = folderOf(file);
  const text = readFileSync(join(root, file), 'utf8');
  return [...text.matchAll(/(?:\bfrom |\bimport\(|^import )'([^']+)'/gm)].flatMap(([found, name]) => {
    const problem = Object.hasOwn(WORKSPACES, from)
      ? ruleAgainstWorkspace(root, from, file, name, found.startsWith('import('))
      : name.startsWith('.')
        ? ruleAgainst(file, from, name)
        : ruleAgainstPackage(from, name);
    return problem ? [`  ${file} imports ${name}: ${problem}`] : [];
  });
}

function ruleAgainst(file, from, name) {
  const target = normalize(join(dirname(file), name)).replace(/\.js$/, '.ts');
  const to = folderOf(target);
  if (to === from) {
    const [own, other] = [apiFolderOf(file), apiFolderOf(target)];
    if (!own || !other || own === other || (API_MAY_IMPORT[own] ?? SHARED).includes(other)) return '';
    return SHARED.includes(own) ? `${own} may not import ${other}` : 'resources do not import each other';
  }
  return MAY_IMPORT[from]?.includes(to) ? '' : `${from} may not import ${to}`;
}

function ruleAgainstWorkspace(root, workspace, file, name, isLate) {
  if (name.startsWith('.'))
    return normalize(join(dirname(file), name)).startsWith(`${workspace}/`)
      ? ''
      : 'it is a package of its own';
  const { dependencies } = JSON.parse(readFileSync(join(root, workspace, 'package.json'), 'utf8'));
  if (!name.startsWith('node:') && !Object.keys(dependencies).some((one) => isOf(one, name)))
    return `${workspace}/package.json does not name it`;
  return WORKSPACES[workspace].includes(name) && !isLate
    ? 'it is loaded when it is needed: await import()'
    : '';
}

/** Whether an import is of a package: by its name, or of a part of it. */
function isOf(packageName, imported) {
  return imported === packageName || imported.startsWith(`${packageName}/`);
}

function ruleAgainstPackage(from, name) {
  const folders = SQL_PACKAGES[name];
  return folders && !folders.includes(from) ? `only ${folders.join(' and ')} may` : '';
}

/** `src/store/x.ts` -> `store`; `src/config.ts` -> `src`; `jobs/x.ts` -> `jobs`. */
function folderOf(path) {
  const [top, folder, ...rest] = path.split('/');
  if (top !== 'src') return top;
  if (rest.length === 0) return 'src';
  return folder === 'actors' && rest[0] === 'drivers' ? 'actors/drivers' : folder;
}

/** The folder of src/api: `src/api/alerts/alerts.routes.ts` -> `alerts`. */
function apiFolderOf(path) {
  if (!path.startsWith('src/api/')) return '';
  const [folder, file] = path.slice('src/api/'.length).split('/');
  return file === undefined ? '' : folder;
}
