/** The tree of all commands. It loads none of their code. */
import { Command } from 'commander';
import { withCommonOptions } from './command.js';
import { defineAccess } from './definitions/access.js';
import { defineInstallation } from './definitions/installation.js';
import { defineObjects } from './definitions/objects.js';
import { defineSettings } from './definitions/settings.js';
import { defineWork } from './definitions/work.js';
import { ownVersion } from './version.js';

export function buildProgram(): Command {
  const program = new Command('edge')
    .description('The command line of Edge Gateway')
    .version(ownVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print help')
    .helpCommand('help [command]', 'print the help of a command')
    .enablePositionalOptions()
    .exitOverride()
    // `main.ts` prints errors, as text or as JSON.
    .configureOutput({ outputError: () => undefined });
  withCommonOptions(program);
  defineWork(program);
  defineObjects(program);
  defineInstallation(program);
  defineSettings(program);
  defineAccess(program);
  return program;
}
