/** `edge init`: a folder with edge.yaml, a handler, and a Cargo project for the editor. */
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { EDGE_SCHEMA, readTemplate, SDK, type Template, templateNames } from '../assets.js';
import { UsageError } from '../errors.js';
import { PROJECT_FILE } from '../project.js';
import type { CommonOptions, Session } from '../session.js';
import { safeLine } from '../text.js';

interface InitOptions extends CommonOptions {
  readonly template: string;
  readonly host: string;
}

/** Where the SDK is copied to, when it is not beside this program for good. */
const COPIED_SDK = '.edge/sdk';
/** Editors complete and check edge.yaml with it. */
const SCHEMA_FILE = 'edge.schema.json';

export async function init(session: Session, { template, host }: InitOptions, folder = '.'): Promise<void> {
  requireHost(host);
  const names = templateNames();
  if (template === 'help') {
    session.out.result(names, () => session.out.line(names.join('\n')));
    return;
  }
  if (!names.includes(template))
    throw new UsageError(`There is no template ${template}`, `There are: ${names.join(', ')}.`);
  const target = resolve(folder);
  const name = nameOf(target);
  const files = filesOf(name, host, readTemplate(template));
  const existing = [...Object.keys(files), COPIED_SDK].find((file) => existsSync(join(target, file)));
  if (existing !== undefined)
    throw new UsageError(`${join(target, existing)} exists; nothing was written`, 'Choose another folder.');
  for (const [file, content] of Object.entries(files)) {
    mkdirSync(dirname(join(target, file)), { recursive: true });
    writeFileSync(join(target, file), content, { flag: 'wx' });
  }
  if (!SDK.isShared) cpSync(SDK.folder, join(target, COPIED_SDK), { recursive: true });
  const where = relative('.', target) || '.';
  session.out.result({ folder: target, files: Object.keys(files) }, () => {
    session.out.line(safeLine(`Made in ${where}: ${Object.keys(files).join(', ')}`));
    session.out.line(safeLine(`Next: ${where === '.' ? '' : `cd ${where} && `}edge dev`));
  });
}

/** Requires a host as the API takes it. @throws UsageError */
function requireHost(host: string): void {
  if (host === '*' || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host)) return;
  throw new UsageError(`${host} is no host`, 'Such as api.example.com, or "*" for all hosts.');
}

function filesOf(name: string, host: string, { endpoints, pools, code }: Template): Record<string, string> {
  const [first] = endpoints;
  const file = `src/${(first?.name ?? name).replace(/\W+/g, '_')}.rs`;
  const isAsync = /handler_(loop|ws)_async/.test(code);
  return {
    [PROJECT_FILE]: projectFile(name, host, file, endpoints, pools),
    [file]: code,
    'Cargo.toml': cargoToml(name, file, isAsync),
    [SCHEMA_FILE]: readFileSync(EDGE_SCHEMA, 'utf8'),
    '.gitignore': 'target/\n',
  };
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
      `    handler: ${file}\n    dependencies: {} # crates, as in Cargo.toml\n`,
  );
  // That of the machine is no folder's own: others have endpoints there, too. All hosts are no domain.
  const domains = ['localhost', '*'].includes(host) ? '' : `domains:\n  - host: ${text(host)}\n`;
  return `# yaml-language-server: $schema=${SCHEMA_FILE}\nstack: ${text(name)}\n${domains}${bound.join('')}endpoints:\n${items.join('')}`;
}

/** A text of YAML; JSON is YAML. */
function text(value: string): string {
  return /^[A-Za-z][\w.-]*$/.test(value) ? value : JSON.stringify(value);
}

/** Cargo.toml for the editor and `cargo test`; the gateway compiles each handler by itself. */
function cargoToml(name: string, file: string, isAsync: boolean): string {
  const sdk = JSON.stringify(SDK.isShared ? SDK.folder : COPIED_SDK);
  return `# For the editor and \`cargo test\`. The gateway itself compiles each handler with the crates that ${PROJECT_FILE} names.
[package]
name = "${name}"
version = "0.1.0"
edition = "2021"
publish = false

[workspace]
${SDK.isShared ? '' : 'exclude = [".edge"]\n'}
[[bin]]
name = "${basename(file, '.rs')}"
path = "${file}"

[dependencies]
rust-edge-gateway-sdk = { path = ${sdk}${isAsync ? ', features = ["async"]' : ''} }
serde = { version = "1", features = ["derive"] }
serde_json = "1"
${isAsync ? 'tokio = "1"\n' : ''}`;
}

/** The name of a folder, as a package may have it. */
function nameOf(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9_-]+/g, '-')
    .replace(/^[^a-z]+/, '');
  return name === '' ? 'edge-project' : name;
}
