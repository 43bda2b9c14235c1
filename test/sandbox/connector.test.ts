/** Connections that the launcher makes for a program that cannot reach the sockets itself: to those of some users. */
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { chown, symlink, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { launched, ownProgram } from '../../src/sandbox/launcher.js';
import {
  FRONT_USER,
  HAS_UNTRUSTED_USERS,
  SERVICE_USERS,
  UNTRUSTED_GROUP,
  UNTRUSTED_USERS,
} from '../../src/util/untrusted-users.js';
import { type TempDir, tempDir } from '../support/temp.js';

/** Asks for each path, and prints what it is given: the name of an error, or whether the connection works. */
const PROGRAM = `
import array, errno, os, socket, sys
asking = socket.socket(fileno=3)
for path in sys.argv[1:]:
    asking.send(path.encode())
    code, control, _, _ = asking.recvmsg(4, socket.CMSG_SPACE(4))
    number = int.from_bytes(code, sys.byteorder)
    if number != 0:
        print(errno.errorcode[number])
        continue
    with socket.socket(fileno=array.array('i', control[0][2])[0]) as connection:
        connection.setblocking(True)
        print(connection.recv(16).decode(), os.getuid())
`;

describe('connections that the launcher makes', () => {
  let folder: TempDir;
  const servers: Server[] = [];

  before(async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    folder = await tempDir('connector');
  });
  after(async () => {
    for (const server of servers) server.close();
    await folder?.remove();
  });

  /** A socket that belongs to a user, and greets. */
  async function socketOf(user: number, name: string): Promise<string> {
    const path = join(folder.path, name);
    const server = createServer((socket) => socket.end('hello'));
    servers.push(server);
    server.listen(path);
    await once(server, 'listening');
    await chown(path, user, UNTRUSTED_GROUP);
    return path;
  }

  /** The lines that the program prints, which asks for connections to these. */
  async function askedFor(...paths: readonly string[]): Promise<string[]> {
    const identity = { user: FRONT_USER, group: FRONT_USER, groups: [] };
    const plan = ownProgram(3, identity, UNTRUSTED_USERS);
    const [file, args] = launched(plan, 'python3', ['-c', PROGRAM, ...paths]);
    const { stdout } = await promisify(execFile)(file, args);
    return stdout.trim().split('\n');
  }

  it('connects a program to the socket of a user that it cannot reach', async () => {
    const path = await socketOf(UNTRUSTED_USERS.first, 'handler');
    expect(await askedFor(path, path)).to.deep.equal([`hello ${FRONT_USER}`, `hello ${FRONT_USER}`]);
  });

  it('connects no program to sockets of other users, by links, or to what is no socket', async () => {
    const link = join(folder.path, 'link');
    await symlink(await socketOf(UNTRUSTED_USERS.first, 'target'), link);
    const file = join(folder.path, 'file');
    await writeFile(file, '');
    await chown(file, UNTRUSTED_USERS.first, UNTRUSTED_GROUP);
    const others = [await socketOf(0, 'root'), await socketOf(SERVICE_USERS.first, 'service')];
    const asked = await askedFor(...others, link, file, join(folder.path, 'missing'), 'relative', '/');
    expect(asked).to.deep.equal(['EPERM', 'EPERM', 'ENOTSOCK', 'ENOTSOCK', 'ENOENT', 'ENOENT', 'EINVAL']);
  });
});
