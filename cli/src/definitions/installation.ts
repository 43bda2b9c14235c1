/** Commands for whole installations as files. */
import type { Command } from 'commander';
import { command, runs } from '../command.js';

/** The description of the option `--no-wait`, for what may have to wait for its turn. */
export const NO_WAIT = 'exit with 75 when other applies are before it, instead of waiting for them';
const load = () => import('../commands/apply.js');

export function defineInstallation(program: Command): void {
  runs(
    environment(
      command(program, 'validate [folder]', 'check the files of a folder against the installation'),
    ),
    async () => (await load()).validate,
  );
  runs(
    changing(
      command(program, 'diff [folder]', 'show what an apply of a folder would change; nothing is changed'),
    ).option('--exit-code', 'exit with 0 when nothing would change, with 2 when something would'),
    async () => (await load()).diff,
  );
  runs(
    changing(
      command(
        program,
        'apply [folder]',
        'make the installation what the files of a folder say, all or nothing',
      ),
    )
      .option('-y, --yes', 'do not ask')
      .option('--no-wait', NO_WAIT),
    async () => (await load()).apply,
  );
  runs(
    command(program, 'applies', 'list applies, the newest first').option(
      '-a, --all',
      'all, not only the last 20',
    ),
    async () => (await load()).applies,
  );
  runs(
    command(program, 'export', 'write an installation as files, as `edge apply` takes them')
      .option('-o, --output <dir>', 'into this folder; without it: edge.yaml to stdout')
      .option('--openapi', 'OpenAPI documents of --domain instead; -o may name a file, .json or .yaml')
      .option('--collection <collection>', 'with --openapi: only this collection, HOST/NAME')
      .option('--domain <host>', 'only what is of this host, and the services that it uses')
      .option('--stack <name>', 'only what is of this stack')
      .option('-f, --force', 'replace files of the folder'),
    async () => (await import('../commands/export.js')).exportInstallation,
  );
}

function environment(defined: Command): Command {
  return defined.option('--env <name>', 'merge edge.NAME.yaml, the overlay of an environment');
}

function changing(defined: Command): Command {
  return environment(defined)
    .option('--prune', 'remove what the stack has made and the folder does not have any more')
    .option('--adopt', 'make what exists and belongs to no stack a part of this one');
}
