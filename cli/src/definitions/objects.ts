/** Commands for domains, collections, endpoints and services, and for imports. */
import { type Command, Option } from 'commander';
import { command, group, runs } from '../command.js';

const load = () => import('../commands/objects.js');
const loadServices = () => import('../commands/services.js');
const loadImports = () => import('../commands/imports.js');

/** How each kind is named. */
const NAMES = {
  endpoint: 'HOST/NAME, HOST/COLLECTION/NAME, "METHOD HOST/ROUTE", or an id',
  collection: 'HOST/NAME, or an id',
  domain: 'its host, or an id',
  service: 'its name, or an id',
} as const;

export function defineObjects(program: Command): void {
  for (const kind of Object.keys(NAMES) as (keyof typeof NAMES)[]) {
    const commands = group(
      program,
      kind,
      `list, show and delete ${kind}s${kind === 'service' ? '; test and activate them' : ''}`,
    );
    const list = command(commands, 'list', `list ${kind}s`).option(
      '--search <text>',
      'with this in a name or another text',
    );
    if (kind === 'endpoint')
      list
        .option('--domain <host>', 'of this host')
        .option('--collection <name>', 'of this collection: HOST/NAME');
    if (kind === 'collection') list.option('--domain <host>', 'of this host');
    runs(list, async () => (await load()).listOf(kind));
    runs(command(commands, 'show', `show one`).argument('<name>', NAMES[kind]), async () =>
      (await load()).showOf(kind),
    );
    runs(
      command(
        commands,
        'delete',
        kind === 'domain' || kind === 'collection' ? `delete one, with its endpoints` : 'delete one',
      )
        .argument('<name>', NAMES[kind])
        .option('-y, --yes', 'do not ask'),
      async () => (await load()).deleteOf(kind),
    );
    if (kind === 'service') defineServices(commands);
  }
  defineImports(program);
}

function defineServices(services: Command): void {
  runs(
    command(services, 'create <name> <type>', 'create a service; its config is JSON on stdin, or in a file')
      .option('--config <file>', 'the file with the config', '-')
      .option('--activate', 'activate it, too'),
    async () => (await loadServices()).create,
  );
  for (const [name, what] of [
    ['test', 'try to reach the backend of a service, active or not'],
    ['activate', 'connect a service with its backend'],
    ['deactivate', 'end the connections of a service, after what is under way'],
  ] as const)
    runs(
      command(services, name, what).argument('<name>', NAMES.service),
      async () => (await loadServices())[name],
    );
  runs(
    command(
      services,
      'bind <service> <endpoint> <pool>',
      'let the handler of an endpoint use a service as this pool',
    ),
    async () => (await loadServices()).bind,
  );
}

function defineImports(program: Command): void {
  const imports = group(program, 'import', 'import OpenAPI documents and ZIP bundles');
  for (const [kind, what] of [
    ['openapi', 'make endpoints of the operations of an OpenAPI document'],
    ['bundle', 'make endpoints of a ZIP bundle: a document and its handlers'],
  ] as const) {
    const defined = command(imports, `${kind} <file>`, what)
      .requiredOption('--domain <host>', 'the host of the endpoints; "*" for all')
      .option('--collection <name>', 'add them to this collection: HOST/NAME')
      .option('--create-collection', 'use or make the collection with the title of the document')
      .addOption(
        new Option('--validate <mode>', 'check requests by the schemas of the document').choices([
          'off',
          'report',
          'enforce',
        ]),
      )
      .option('--dry-run', 'say what it would do, and change nothing');
    if (kind === 'bundle')
      defined
        .option('--compile', 'compile the handlers')
        .option('--start', 'compile the handlers and start them');
    runs(defined, async () => (await loadImports())[kind]);
  }
}
