/** The transcript of docs/CLI.md: what real commands print. `scripts/cli-transcript.mjs` writes it. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Stack } from './processes.js';

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
# A canary, and its rollback
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
# An installation as files: planned, applied all or nothing, rolled back
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

const PLACE = /(<!-- transcript -->\n)([\s\S]*?)(<!-- end of transcript -->)/;

/** The page with its transcript replaced; undefined when it has no place for one. */
export function withTranscript(page: string, transcript: string): string | undefined {
  if (!PLACE.test(page)) return undefined;
  return page.replace(
    PLACE,
    (_, start: string, _before: string, end: string) => `${start}\n${transcript}\n${end}`,
  );
}

/** The transcript that docs/CLI.md has. */
export function writtenTranscript(): string {
  return PLACE.exec(readFileSync('docs/CLI.md', 'utf8'))?.[2] ?? '';
}

/**
 * Runs the commands against the real processes, and writes down what they print; only addresses, ids and folders are
 * replaced by short ones.
 * @param folder an empty one
 */
export async function transcriptOf(stack: Stack, folder: string): Promise<string> {
  let cwd = folder;
  let text = '';
  for (const [at, line] of COMMANDS.trim().split('\n').entries()) {
    if (line.startsWith('# ')) {
      text += `${at > 0 ? '```\n\n' : ''}### ${line.slice(2)}\n\n\`\`\`\n`;
      continue;
    }
    const [, into] = /^cd (\S+)$/.exec(line) ?? [];
    if (into !== undefined) cwd = join(cwd, into);
    text += `$ ${line}\n${into === undefined ? await printed(stack, folder, cwd, line) : ''}`;
    // The log is written a moment after the answer.
    if (line.startsWith('edge invoke'))
      await printed(stack, folder, cwd, 'curl -s http://localhost:8080/hello/Ada; sleep 1');
  }
  return shortened(`${text}\`\`\`\n`, stack, folder);
}

/** What a line prints, on both streams, in the order in which it does. */
function printed({ apiUrl, gatewayUrl }: Stack, folder: string, cwd: string, line: string): Promise<string> {
  const command = line
    .replaceAll('http://127.0.0.1:8081', apiUrl)
    .replaceAll('http://localhost:8080', gatewayUrl.replace('127.0.0.1', 'localhost'));
  const env = {
    ...process.env,
    PATH: `${resolve('node_modules/.bin')}:${process.env['PATH']}`,
    XDG_CONFIG_HOME: folder,
    EDGE_URL: '',
    EDGE_TOKEN: '',
  };
  return new Promise((found, reject) => {
    const child = spawn('bash', ['-c', `exec 2>&1; ${command}`], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.once('error', reject);
    child.once('close', () => found(output === '' || output.endsWith('\n') ? output : `${output}\n`));
  });
}

/** Without what is of this machine and this run. */
function shortened(text: string, { apiUrl }: Stack, folder: string): string {
  const { hostname, host } = new URL(apiUrl);
  return text
    .replaceAll(host, `${hostname}:8081`)
    .replaceAll(folder, '/home/ada')
    .replaceAll(/([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '$1-...')
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n');
}

/** What differs between runs and machines: how fast something went, when, where, and what the compiler says of code. */
const VARYING: readonly (readonly [RegExp, string])[] = [
  [/\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ/g, 'TIME'],
  [/\d+(\.\d+)? ms/g, 'N ms'],
  [/\b[0-9a-f]{8}-\.\.\./g, 'ID'],
  [/\b[0-9a-f]{18}-\d+/g, 'REQUEST'],
  [/^(web|worker|gateway|actor-host) +\S+ +\d+ .*$/gm, '$1'],
  [/^sandbox .*$/gm, 'sandbox'],
  [/^compiler .*$/gm, 'compiler'],
  [/^preparing .*\n/gm, ''],
  [/^(Waiting|Compiling|Starting handlers|Writing|A worker prepares).*\n/gm, ''],
  [/^error\[E[\s\S]*?(?=^error: )/gm, ''],
  [/ {2,}/g, '  '],
];

/** A transcript without what differs between runs. */
export function lastingPart(transcript: string): string {
  return VARYING.reduce((text, [pattern, instead]) => text.replace(pattern, instead), transcript).trim();
}
