/** Commands about gateways, and who may do what. */
import { type Command, Option } from 'commander';
import { command, group, runs } from '../command.js';
import { collected } from './work.js';

export function defineAccess(program: Command): void {
  runs(
    command(program, 'login <url>', 'keep a gateway and a token for it: typed, or read from stdin').option(
      '--name <context>',
      'the name of the context; default: the host',
    ),
    async () => (await import('../commands/login.js')).login,
  );
  runs(
    command(program, 'whoami', 'show who one is, and what one may do'),
    async () => (await import('../commands/login.js')).whoami,
  );
  const contexts = group(program, 'context', 'list the gateways that are kept, and choose one');
  const loadContexts = () => import('../commands/contexts.js');
  runs(command(contexts, 'list', 'list the gateways'), async () => (await loadContexts()).listContexts);
  runs(
    command(contexts, 'use <name>', 'use this one from now on'),
    async () => (await loadContexts()).useContext,
  );
  runs(
    command(contexts, 'rm <name>', 'forget a gateway and its token').option('-y, --yes', 'do not ask'),
    async () => (await loadContexts()).removeContext,
  );
  runs(
    command(program, 'status', 'show what runs: nodes, builds, queues, and how handlers are confined'),
    async () => (await import('../commands/status.js')).status,
  );
  runs(
    command(program, 'open [endpoint]', 'print the address of the web UI, and open it in a browser'),
    async () => (await import('../commands/open.js')).open,
  );
  defineTokens(program);
  defineUsers(program);
  runs(
    command(program, 'completion', 'print a script that completes commands').addArgument(
      program.createArgument('<shell>', 'for this shell').choices(['bash', 'zsh', 'fish']),
    ),
    async () => {
      const { completion } = await import('../commands/completion.js');
      return completion(program);
    },
  );
}

function defineTokens(program: Command): void {
  const tokens = group(program, 'token', 'list, make and revoke tokens');
  const load = () => import('../commands/tokens.js');
  runs(command(tokens, 'list', 'list tokens'), async () => (await load()).listTokens);
  runs(
    command(tokens, 'create <name>', 'make a token; it is printed once')
      .option(
        '--permission <permission>',
        'what it may do; several times; default: all that one may',
        collected,
      )
      .option('--domain <host>', 'only there; several times', collected)
      .option('--expires <time>', 'when it ends: in 12h, 30d, or ISO 8601'),
    async () => (await load()).createToken,
  );
  runs(
    command(tokens, 'delete <id>', 'revoke a token').option('-y, --yes', 'do not ask'),
    async () => (await load()).deleteToken,
  );
}

function defineUsers(program: Command): void {
  const users = group(program, 'user', 'list, add and delete users');
  const load = () => import('../commands/users.js');
  runs(command(users, 'list', 'list users'), async () => (await load()).listUsers);
  runs(
    command(users, 'create <email>', 'add a user: the password is typed, or read from stdin')
      .addOption(
        new Option('--role <role>', 'what they may do')
          .choices(['admin', 'editor', 'viewer'])
          .makeOptionMandatory(),
      )
      .option('--name <name>', 'their name; default: the email')
      .option('--domain <host>', 'only there; several times', collected),
    async () => (await load()).createUser,
  );
  runs(
    command(users, 'delete <email>', 'delete a user, with sessions and tokens').option(
      '-y, --yes',
      'do not ask',
    ),
    async () => (await load()).deleteUser,
  );
}
