/**
 * `npm run docs`: generates the tables of docs/ from the code: settings, errors, settings of services, the help of
 * commands; and the JSON Schema of edge.yaml. A table is
 * between `<!-- table: NAME -->` and `<!-- end of table -->`. With `--check`, which `npm run check` uses, nothing is
 * written, and an outdated table is a failure.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ROOT } from './prepare.mjs';

const { SETTING_GROUPS } = await import('../dist/src/settings.js');
const { ERROR_CATALOGUE } = await import('../dist/src/errors.js');
const { ROUTES } = await import('../dist/src/api/app.js');
const { PAGES } = await import('../dist/src/api/middleware/authorize.js');
const { edgeFileSchema } = await import('../dist/src/api/apply/edge-file.js');
const { kindsInPath } = await import('../dist/src/api/access/references.js');
const { PERMISSIONS, PERMISSIONS_OF_ROLE, ROLES } = await import('../dist/src/model/permission.js');
const { buildProgram } = await import('../cli/dist/program.js');
const { SERVICE_CONFIGS } = await import('../dist/src/model/service-configs.js');

const TABLES = {
  'docs/CONFIGURATION.md': {
    settings: () =>
      Object.entries(SETTING_GROUPS)
        .map(([title, settings]) => `## ${title}\n\n${settingsTable(settings)}`)
        .join('\n'),
  },
  'docs/ACCESS.md': {
    permissions: () =>
      table(
        ['permission', ...ROLES],
        PERMISSIONS.map((name) => [
          code(name),
          ...ROLES.map((role) => (PERMISSIONS_OF_ROLE[role].has(name) ? 'yes' : '')),
        ]),
      ),
    routes: () =>
      table(
        ['route', 'permission', ...ROLES, 'with limits to domains'],
        [
          ...ROUTES,
          ...PAGES.map((page) => ({
            ...page,
            method: 'GET',
            isForAll: page.permission === 'authenticated',
            isOfInstallation: true,
          })),
        ].map((route) => [
          code(`${route.method} ${route.path}`),
          code(route.permission),
          ...ROLES.map((role) => access(role, route)),
          reach(route),
        ]),
      ),
  },
  'docs/ERRORS.md': {
    errors: () =>
      table(
        ['code', 'status', 'meaning'],
        Object.entries(ERROR_CATALOGUE).map(([name, { status, meaning }]) => [code(name), status, meaning]),
      ),
  },
  'docs/CLI.md': {
    commands: () => commandsIn(buildProgram()).map(helpOf).join('\n'),
  },
  'docs/SERVICES.md': {
    'service settings': () =>
      table(
        ['`service_type`', 'required', 'optional, with their defaults'],
        Object.entries(SERVICE_CONFIGS).map(([type, schema]) => [code(type), ...settingsOf(schema)]),
      ),
  },
};

/** Whole files that are generated. */
const FILES = {
  'docs/edge.schema.json': () => `${JSON.stringify(edgeFileSchema(), null, 2)}\n`,
};

const isCheck = process.argv.includes('--check');
const outdatedFiles = Object.entries(FILES).flatMap(([file, make]) => {
  const path = join(ROOT, file);
  const content = make();
  if (existsSync(path) && readFileSync(path, 'utf8') === content) return [];
  if (!isCheck) writeFileSync(path, content);
  return [file];
});
const outdatedTables = Object.entries(TABLES).flatMap(([file, tables]) => {
  const path = join(ROOT, file);
  const before = readFileSync(path, 'utf8');
  const after = Object.entries(tables).reduce(
    (text, [name, makeTable]) => withTable(file, text, name, makeTable()),
    before,
  );
  if (after === before) return [];
  if (!isCheck) writeFileSync(path, after);
  return [file];
});
const outdated = [...outdatedFiles, ...outdatedTables];
if (isCheck && outdated.length > 0) fail(`Not current: ${outdated.join(', ')}. Run: npm run docs`);

function withTable(file, text, name, content) {
  const place = new RegExp(`(<!-- table: ${name} -->\n)[^]*?(<!-- end of table -->)`);
  if (!place.test(text)) fail(`${file} has no place for its table: <!-- table: ${name} -->`);
  return text.replace(place, (_, start, end) => `${start}\n${content}\n${end}`);
}

function table(head, rows) {
  const line = (cells) => `| ${cells.map((cell) => String(cell).replaceAll('|', '\\|')).join(' | ')} |\n`;
  return [line(head), `|${'---|'.repeat(head.length)}\n`, ...rows.map(line)].join('');
}

/** What a role may do with a route. */
function access(role, { permission, isOpenToOwner }) {
  if (permission === 'public' || permission === 'authenticated') return 'yes';
  if (PERMISSIONS_OF_ROLE[role].has(permission)) return 'yes';
  return isOpenToOwner ? 'oneself' : '';
}

/** What of a route is left for who is limited to certain domains. */
function reach({ path, permission, isForAll, isOfInstallation }) {
  if (permission === 'public' || isForAll) return '';
  if (isOfInstallation || permission.startsWith('users:')) return 'nobody';
  const kinds = kindsInPath(path).map(([, kind]) => kind);
  if (kinds.length > 0) return `${kinds.join(' and ')} of their hosts`;
  return /^\/api\/(tokens|sessions)/.test(path) ? 'their own' : 'what is of their hosts';
}

function settingsTable(settings) {
  const rows = Object.entries(settings);
  return table(
    ['variable', 'default', 'what it does'],
    rows.map(([name, { shown, description }]) => [code(name), shown, description]),
  );
}

/** The required keys of a config, and the others with their defaults. */
function settingsOf({ properties, required = [], anyOf = [] }) {
  const isNeeded = (key) => required.includes(key) && properties[key].default === undefined;
  const alternatives = anyOf.map((one) => one.required.map(code).join(', '));
  const needed = Object.keys(properties).filter(isNeeded).map(code);
  const others = Object.keys(properties).filter((key) => !isNeeded(key));
  const shown = others.map((key) => {
    const { default: fallback, enum: values } = properties[key];
    const choice = values
      ? ` (${values.map((value) => (value === fallback ? `**${value}**` : value)).join(', ')})`
      : '';
    return `${code(key)}${choice || (fallback === undefined ? '' : ` ${fallback}`)}`;
  });
  return [
    [...needed, ...(alternatives.length > 0 ? [alternatives.join(' or ')] : [])].join(', '),
    shown.join(', '),
  ];
}

/** The commands that do something. */
function commandsIn(command) {
  return command.commands.length === 0 ? [command] : command.commands.flatMap(commandsIn);
}

/** What `--help` prints, without the options that all commands have. */
function helpOf(command) {
  command.configureOutput({ getOutHelpWidth: () => 110, getOutHasColors: () => false });
  const lines = command
    .helpInformation()
    .replace(/^Usage: .*\n\n/, '')
    .split('\n')
    .filter((line) => !/^ {2}(--json|--context|--no-color|-h, --help) /.test(line));
  const text = lines
    .join('\n')
    .replace(/\nOptions:\n+$/, '\n')
    .trimEnd();
  const usage = command.helpInformation().split('\n', 1)[0].replace('Usage: ', '').replace(' [options]', '');
  const [summary, ...rest] = text.split('\n');
  const details = rest.join('\n').trim();
  return `\`${usage}\`: ${summary}\n${details === '' ? '' : `\n\`\`\`\n${details}\n\`\`\`\n`}`;
}

function code(name) {
  return `\`${name}\``;
}
