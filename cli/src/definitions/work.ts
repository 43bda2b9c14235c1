/** Commands for the daily work on handlers. */
import { type Command, InvalidArgumentError, Option } from 'commander';
import { command, runs } from '../command.js';
import { NO_WAIT } from './installation.js';

const ENDPOINT =
  'HOST/NAME, HOST/COLLECTION/NAME, "METHOD HOST/ROUTE" or an id; in a folder with one endpoint, that one';

export function defineWork(program: Command): void {
  runs(
    command(program, 'init [folder]', 'make a folder with edge.yaml, a handler and a Cargo project')
      .option('--template <name>', 'an example to begin with; "help" lists them', 'hello')
      .option('--host <host>', 'the host that the endpoint is for', 'localhost')
      .option('--existing', 'write what is missing into a folder that is there, and keep the rest'),
    async () => (await import('../commands/init.js')).init,
  );
  runs(
    command(program, 'dev [folder]', 'compile and deploy with every save, and show errors and logs')
      .option(
        '--domain <host>',
        'deploy to this host instead of those in edge.yaml; default: USER-dev.localhost',
      )
      .option('--no-logs', 'do not show the logs'),
    async () => (await import('../commands/dev.js')).dev,
  );
  runs(
    command(
      program,
      'deploy [path]',
      'deploy the endpoints of a folder with edge.yaml, or of one handler in it',
    )
      .option('-m, --message <text>', 'why')
      .option('--percent <n>', 'give the new version this share of the requests', percent)
      .option('--timeout <seconds>', 'wait no longer for each; by default as long as it gets on', number),
    async () => (await import('../commands/deploy.js')).deploy,
  );
  runs(
    command(
      program,
      'update [crate]',
      'give handlers the newest crates that they may have, or one of them',
    ).option('--endpoint <name>', `of this endpoint, instead of those of the folder: ${ENDPOINT}`),
    async () => (await import('../commands/update.js')).update,
  );
  runs(
    command(program, 'rollback', 'run the version that served before, or another one; or roll back an apply')
      .argument('[endpoint]', ENDPOINT)
      .option('--version <n>', 'the version to run', number)
      .option('--apply <id>', 'roll back all that this apply has changed')
      .option('-y, --yes', 'do not ask before an apply is rolled back')
      .option('--no-wait', `with --apply: ${NO_WAIT}`)
      .option('-m, --message <text>', 'why'),
    async () => (await import('../commands/versions.js')).rollback,
  );
  runs(
    command(program, 'versions', 'list the versions of an endpoint, the newest first')
      .argument('[endpoint]', ENDPOINT)
      .option('--limit <n>', 'at most so many', number, 20)
      .option('--diff <a..b>', 'show what differs between two of them instead, such as 3..5'),
    async () => (await import('../commands/versions.js')).versions,
  );
  runs(
    command(program, 'promote', 'give one version all requests: the newer of two that share them')
      .argument('[endpoint]', ENDPOINT)
      .option('--version <n>', 'this version', number)
      .option('-m, --message <text>', 'why'),
    async () => (await import('../commands/versions.js')).promote,
  );
  defineLooking(program);
}

function defineLooking(program: Command): void {
  runs(
    command(program, 'logs', 'show what handlers say and what became of requests')
      .argument('[endpoint]', `${ENDPOINT}; without one outside of such a folder, of all`)
      .option('-f, --follow', 'wait for new entries, and show them')
      .option('--since <time>', 'from then on: 15m, 2h, 7d, or ISO 8601')
      .option('--until <time>', 'before then')
      .addOption(
        new Option('--level <level>', 'of this level and above').choices([
          'trace',
          'debug',
          'info',
          'warn',
          'error',
        ]),
      )
      .option('--status <status>', 'requests with a status such as 503, or 5xx')
      .option('--request <id>', 'of this request')
      .option('--search <text>', 'with this in the message or in the path')
      .option('--domain <host>', 'of the endpoints of this host')
      .option('--collection <name>', 'of the endpoints of this collection: HOST/NAME')
      .option('-n, --limit <n>', 'at most so many entries; with --follow: how many to begin with', number),
    async () => (await import('../commands/logs.js')).logs,
  );
  runs(
    command(
      program,
      'invoke <method> <path>',
      'send a request to a version, deployed or not, and show what it does',
    )
      .option('-d, --data <body>', 'the body: a text, @FILE, or @- for stdin')
      .option('-H, --header <header>', 'a header: "Name: value"; several times', collected)
      .option('--version <n>', 'the version; the newest unless given', number)
      .option('--host <host>', 'the host, unless the path is HOST/PATH or a URL; default: that of edge.yaml')
      .option('--endpoint <name>', 'the endpoint, instead of the one whose route fits'),
    async () => (await import('../commands/invoke.js')).invoke,
  );
  runs(
    command(program, 'route <method> <url>', 'show which endpoint a request would hit, and why none'),
    async () => (await import('../commands/invoke.js')).route,
  );
}

export function number(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('It is no number from 1 on.');
  return Number(text);
}

function percent(text: string): number {
  if (number(text) > 100) throw new InvalidArgumentError('It is at most 100.');
  return Number(text);
}

export function collected(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}
