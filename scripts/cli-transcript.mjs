/**
 * `node scripts/cli-transcript.mjs`: writes the transcript of docs/CLI.md. It runs the commands against the real
 * processes and writes down what they print; only addresses, ids and folders are replaced by short ones.
 */
import { spawn } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { buildAll } from './compile.mjs';
import { ensureAllPackages, fail, ROOT, requireNode, requireRust } from './prepare.mjs';

const FILE = join(ROOT, 'docs/CLI.md');
/** A command a line; what begins with # is a title. */
const COMMANDS = `
# A gateway, and a token for it
edge login http://127.0.0.1:8081
edge whoami
edge status
# A handler goes live
edge init shop
cd shop
edge deploy -m 'the first'
curl -s http://localhost:8080/hello/Ada
edge endpoint list
# The compiler refuses a change
sed -i 's/::ok(/::okay(/' src/hello.rs
edge deploy; echo "exit code $?"
# A canary, and the way back
sed -i 's/::okay(/::ok(/; s/Hello, {name}/Servus, {name}/' src/hello.rs
edge deploy --percent 10 -m 'as in Vienna'
edge versions
edge promote
edge rollback
# Requests, and what became of them
edge invoke GET /hello/Ada --version 2
edge route GET localhost/hello/Ada
edge logs -n 1 --status 2xx
# Names that are nearly right, and commands
edge endpoint show localhost/helo
edge endpont list
edge endpoint delete localhost/hello
# An installation as files: planned, applied all or nothing, taken back
cd ..
edge init pets --host pets.localhost
cd pets
edge diff
edge apply --yes
sed -i 's/Hello, {name}/Servus, {name}/' src/hello.rs
edge diff
edge apply --yes
edge applies
edge rollback --yes --apply "$(edge applies --json | jq -r '.[0].id')"
edge export --stack pets -o ../files
edge diff ../files --exit-code; echo "exit code $?"
# JSON for programs
cd ../shop
edge versions --json | jq -c '.[] | [.version, .deployed_percent]'
edge endpoint show localhost/nothing --json
`;

requireNode();
await requireRust();
await buildAll(ensureAllPackages);
const { startStack } = await import('../dist/test/support/processes.js');
const { stopServer } = await import('../dist/test/support/postgres.js');
const { tempDir } = await import('../dist/test/support/temp.js');

const folder = await tempDir('transcript');
let cwd = folder.path;
const stack = await startStack();
try {
  const sections = await transcript();
  const before = readFileSync(FILE, 'utf8');
  const place = /(<!-- transcript -->\n)[\s\S]*?(<!-- end of transcript -->)/;
  if (!place.test(before)) fail('docs/CLI.md has no place for the transcript.');
  writeFileSync(
    FILE,
    before.replace(place, (_, start, end) => `${start}\n${sections}\n${end}`),
  );
} finally {
  await stack.close();
  await stopServer();
  await folder.remove();
}

async function transcript() {
  const lines = COMMANDS.trim().split('\n');
  let text = '';
  for (const [at, line] of lines.entries()) {
    if (line.startsWith('# ')) {
      text += `${at > 0 ? '```\n\n' : ''}### ${line.slice(2)}\n\n\`\`\`\n`;
      continue;
    }
    text += `$ ${line}\n${await printed(line)}`;
    // The log is written a moment after the answer.
    if (line.startsWith('edge invoke')) await printed('curl -s http://localhost:8080/hello/Ada; sleep 1');
  }
  return shortened(`${text}\`\`\`\n`);
}

/** What a line prints, on both streams, in the order in which it does. */
function printed(line) {
  const [, into] = /^cd (\S+)$/.exec(line) ?? [];
  if (into !== undefined) {
    cwd = join(cwd, into);
    return Promise.resolve('');
  }
  const command = line
    .replaceAll('http://127.0.0.1:8081', stack.apiUrl)
    .replaceAll('http://localhost:8080', stack.gatewayUrl.replace('127.0.0.1', 'localhost'));
  const env = {
    ...process.env,
    PATH: `${ROOT}node_modules/.bin:${process.env.PATH}`,
    XDG_CONFIG_HOME: folder.path,
    EDGE_URL: '',
    EDGE_TOKEN: '',
  };
  return new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', `exec 2>&1; ${command}`], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
    child.once('error', reject);
    child.once('close', () => resolve(output === '' || output.endsWith('\n') ? output : `${output}\n`));
  });
}

/** Without what is of this machine and this run. */
function shortened(text) {
  const ids = new Map();
  const short = (id) => {
    if (!ids.has(id)) ids.set(id, `${id.slice(0, 8)}-...`);
    return ids.get(id);
  };
  const { hostname } = new URL(stack.apiUrl);
  return text
    .replaceAll(stack.apiUrl, `http://${hostname}:8081`)
    .replaceAll(new URL(stack.apiUrl).host, `${hostname}:8081`)
    .replaceAll(folder.path, '/home/ada')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, short)
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}
