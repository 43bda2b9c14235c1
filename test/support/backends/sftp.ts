/** Real SFTP servers for tests, on a free port and a folder of their own: OpenSSH with keys, rclone with a password. */
import { execFile } from 'node:child_process';
import { chown, mkdir, readFile, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseServiceConfig } from '../../../src/model/service-configs.js';
import { freePort } from '../ports.js';
import { serverProcess, withFolder } from '../server-process.js';
import { tempDir } from '../temp.js';
import type { FtpBackend } from './ftp.js';

export interface SftpBackend extends FtpBackend {
  /** The fingerprint of the server's key. */
  readonly fingerprint: string;
}

const run = promisify(execFile);
const PASSWORD = 'test-password';

/** Starts OpenSSH: as `nobody` when the tests run as root, because as root it needs system folders. */
export async function startOpenSsh(): Promise<SftpBackend> {
  const home = await tempDir('sshd');
  const port = await freePort();
  const folder = join(home.path, 'files');
  await mkdir(folder);
  const [hostKey, userKey, configFile] = ['host', 'user', 'sshd_config'].map((name) =>
    join(home.path, name),
  ) as [string, string, string];
  await makeKey(hostKey);
  await makeKey(userKey);
  const settings = {
    ListenAddress: '127.0.0.1',
    Port: port,
    HostKey: hostKey,
    AuthorizedKeysFile: `${userKey}.pub`,
    PidFile: 'none',
    // An account without a password cannot be locked.
    UsePAM: 'yes',
    PrintMotd: 'no',
    StrictModes: 'no',
    PasswordAuthentication: 'no',
    KbdInteractiveAuthentication: 'no',
    Subsystem: 'sftp internal-sftp',
    ForceCommand: 'internal-sftp',
  };
  await writeFile(
    configFile,
    Object.entries(settings)
      .map(([name, value]) => `${name} ${value}\n`)
      .join(''),
  );
  const privateKey = await readFile(userKey, 'utf8');
  const isRoot = process.getuid?.() === 0;
  const nobody = isRoot ? await idsOf('nobody') : undefined;
  if (nobody) for (const path of [folder, hostKey]) await chown(path, nobody.uid, nobody.gid);
  const server = serverProcess('/usr/sbin/sshd', ['-D', '-f', configFile], port, { ...nobody });
  await server.start();
  return {
    folder,
    fingerprint: await fingerprintOf(hostKey),
    config: parseServiceConfig('ftp', {
      host: '127.0.0.1',
      port,
      username: isRoot ? 'nobody' : userInfo().username,
      private_key: privateKey,
      protocol: 'sftp',
      base_path: folder,
      timeout_seconds: 10,
    }),
    ...withFolder(server, home),
  };
}

/** Starts the SFTP server of rclone, which has a user of its own. */
export async function startRcloneSftp(): Promise<SftpBackend> {
  const home = await tempDir('rclone');
  const port = await freePort();
  const folder = join(home.path, 'files');
  await mkdir(folder);
  const hostKey = join(home.path, 'host');
  await makeKey(hostKey);
  const server = serverProcess(
    'rclone',
    [
      ...['serve', 'sftp', folder, '--addr', `127.0.0.1:${port}`, '--user', 'tester', '--pass', PASSWORD],
      ...[
        '--key',
        hostKey,
        '--config',
        join(home.path, 'rclone.conf'),
        '--cache-dir',
        join(home.path, 'cache'),
      ],
      // Otherwise files appear before they are complete.
      ...['--vfs-cache-mode', 'off', '--dir-cache-time', '0s'],
    ],
    port,
  );
  await server.start();
  return {
    folder,
    fingerprint: await fingerprintOf(hostKey),
    config: parseServiceConfig('ftp', {
      host: '127.0.0.1',
      port,
      username: 'tester',
      password: PASSWORD,
      protocol: 'sftp',
      timeout_seconds: 10,
    }),
    ...withFolder(server, home),
  };
}

async function makeKey(path: string): Promise<void> {
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', path]);
}

/** As `ssh-keygen` says it: `256 SHA256:... comment (ED25519)`. */
async function fingerprintOf(path: string): Promise<string> {
  const { stdout } = await run('ssh-keygen', ['-l', '-f', `${path}.pub`]);
  return stdout.split(' ')[1] ?? '';
}

async function idsOf(user: string): Promise<{ uid: number; gid: number }> {
  const id = async (flag: string) => Number((await run('id', [flag, user])).stdout);
  return { uid: await id('-u'), gid: await id('-g') };
}
