/**
 * `npm run check`: the systemd units of `deploy/` start what the Procfile starts, and give it the time that it takes to
 * end.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fail, ROOT } from './prepare.mjs';

const { FORCE_QUIT_MS } = await import('../dist/src/bootstrap/shutdown.js');
const { loadProcessConfig } = await import('../dist/src/config.js');
const { SETTINGS } = await import('../dist/src/settings.js');

const FOLDER = join(ROOT, 'deploy/systemd');
const ANALYZE = '/usr/bin/systemd-analyze';
/** Settings that take what the sandbox of handlers and compilers needs. */
const IN_THE_WAY =
  /^(?:RestrictNamespaces|ProtectProc|ProcSubset|ProtectKernel\w+|SystemCallFilter|ProtectHostname|ProtectControlGroups)=/m;

const files = readdirSync(FOLDER);
const problems = [
  ...commandProblems(),
  ...shutdownProblems(),
  ...sandboxProblems(),
  ...settingProblems(),
  ...analyzerProblems(),
];
if (problems.length > 0)
  fail(`The units of deploy/systemd:\n${problems.map((one) => `  ${one}`).join('\n')}`);

/** There is one unit for each line of the Procfile, with its command. */
function commandProblems() {
  const procfile = readFileSync(join(ROOT, 'Procfile'), 'utf8');
  const entries = new Map([...procfile.matchAll(/^([\w-]+): node (\S+)$/gm)].map(([, ...line]) => line));
  const units = files.flatMap((file) => /^edge-gateway-(.+)\.service$/.exec(file)?.[1] ?? []);
  return [
    ...units.filter((name) => !entries.has(name)).map((name) => `${name}: the Procfile has no such process`),
    ...files
      .filter((file) => file.endsWith('.service') && !file.startsWith('edge-gateway-'))
      .map((file) => `${file}: its name does not begin with edge-gateway-`),
    ...[...entries].flatMap(([name, entry]) => {
      if (!units.includes(name)) return [`${name}: the process has no unit`];
      const command = settingOf(unit(name), 'ExecStart');
      return [
        ...(command === `/usr/bin/node ${entry}` ? [] : [`${name}: ExecStart is ${command}`]),
        ...(existsSync(join(ROOT, entry)) ? [] : [`${name}: ${entry} does not exist`]),
      ];
    }),
    ...(files.includes('edge-gateway.target') ? [] : ['edge-gateway.target does not exist']),
  ];
}

/** No process is killed before its shutdown limit. */
function shutdownProblems() {
  return ['web', 'worker', 'gateway', 'actor-host'].flatMap((name) => {
    const text = unit(name);
    return [
      ...(Number(settingOf(text, 'TimeoutStopSec')) * 1000 > FORCE_QUIT_MS
        ? []
        : [`${name}: TimeoutStopSec must be above ${FORCE_QUIT_MS / 1000}`]),
      ...(settingOf(text, 'KillMode') === 'mixed' ? [] : [`${name}: KillMode must be mixed`]),
      ...(settingOf(text, 'Restart') === 'always' ? [] : [`${name}: Restart must be always`]),
    ];
  });
}

function sandboxProblems() {
  return ['worker', 'gateway'].flatMap((name) => {
    const [found] = IN_THE_WAY.exec(unit(name)) ?? [];
    return [
      ...(found === undefined ? [] : [`${name}: ${found} keeps the sandbox from working`]),
      ...(settingOf(unit(name), 'Delegate') === 'cpu memory pids'
        ? []
        : [`${name}: Delegate must be cpu memory pids`]),
    ];
  });
}

/** The settings that come with the units can be used. */
function settingProblems() {
  const text = readFileSync(join(FOLDER, 'edge-gateway.env'), 'utf8');
  const settings = Object.fromEntries(
    [...text.matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
  );
  const unknown = Object.keys(settings).filter((name) => !Object.hasOwn(SETTINGS, name));
  const expected = { DATA_DIR: '/var/lib/edge-gateway', SANDBOX: 'required' };
  return [
    ...unknown.map((name) => `edge-gateway.env: ${name} is no setting`),
    ...Object.entries(expected)
      .filter(([name, value]) => loadedConfig(settings)[name] !== value)
      .map(([name, value]) => `edge-gateway.env: ${name} must be ${value}`),
  ];
}

function loadedConfig(settings) {
  try {
    return loadProcessConfig(settings);
  } catch (error) {
    return fail(`deploy/systemd/edge-gateway.env: ${error.message}`);
  }
}

/** What systemd says, where it is installed. */
function analyzerProblems() {
  if (!existsSync(ANALYZE)) return [];
  const names = files.filter((file) => /\.(?:service|target)$/.test(file));
  const { status, stderr } = spawnSync(ANALYZE, ['verify', ...names], { cwd: FOLDER, encoding: 'utf8' });
  const own = stderr.split('\n').filter((line) => line.includes('edge-gateway'));
  return own.length > 0 || status === 0 ? own : [`${ANALYZE} failed: ${stderr}`];
}

function unit(name) {
  return readFileSync(join(FOLDER, `edge-gateway-${name}.service`), 'utf8');
}

function settingOf(text, key) {
  return new RegExp(`^${key}=(.*)$`, 'm').exec(text)?.[1];
}
