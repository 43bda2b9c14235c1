/** Commands for variables and secrets. */
import type { Command } from 'commander';
import { command, group, runs } from '../command.js';

const load = () => import('../commands/variables.js');

export function defineSettings(program: Command): void {
  const secrets = group(program, 'secret', 'list, set and delete secrets; values are never shown');
  runs(owner(command(secrets, 'list', 'list the names'), true), async () => (await load()).listSecrets);
  runs(
    owner(command(secrets, 'set <name>', 'set a secret: the value is typed, or read from stdin'), true),
    async () => (await load()).setSecret,
  );
  runs(
    owner(command(secrets, 'rm <name>', 'delete a secret'), true).option('-y, --yes', 'do not ask'),
    async () => (await load()).removeSecret,
  );
  const variables = group(program, 'variable', 'list, set and delete plain variables');
  runs(owner(command(variables, 'list', 'list names and values')), async () => (await load()).listVariables);
  runs(
    owner(command(variables, 'set <name=value...>', 'set variables; the others stay')),
    async () => (await load()).setVariables,
  );
  runs(
    owner(command(variables, 'rm <name...>', 'delete variables')).option('-y, --yes', 'do not ask'),
    async () => (await load()).removeVariables,
  );
}

/** Whose they are. */
function owner(defined: Command, canBeOfInstallation = false): Command {
  return defined
    .option('--domain <host>', 'of this domain')
    .option('--collection <name>', 'of this collection: HOST/NAME')
    .option(
      '--endpoint <name>',
      `of this endpoint${canBeOfInstallation ? '; without one of these: of the installation, for services' : ''}`,
    );
}
