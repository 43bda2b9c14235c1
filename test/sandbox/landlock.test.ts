/** Access of a program at the level `landlock`: it sees the machine, and can use next to nothing of it. */
import { readFile, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { expect } from 'chai';
import { runTool, type ToolResult } from '../../src/build/run-tool.js';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.js';
import { HAS_UNTRUSTED_USERS, isUserOfProgram } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { freePort } from '../support/ports.js';
import { processesWith } from '../support/process-state.js';
import { FALLOCATE, MADVISE, REFUSED_CALLS } from '../support/refused-calls.js';
import { type SandboxFolder, sandboxFolder } from '../support/sandbox-folder.js';
import { TOOL_LIMITS } from '../support/tool-limits.js';

describe('the sandbox without namespaces', () => {
  let sandbox: Sandbox;
  let folder: SandboxFolder;
  let work: string;

  before(async () => {
    sandbox = await openSandbox('landlock', createTestLog().log);
    expect(sandbox.level).to.equal('landlock');
    folder = await sandboxFolder('landlock');
    work = folder.work;
  });
  after(() => folder.remove());

  const sh = async (
    script: string,
    {
      network = false,
      env = {},
      ...limits
    }: Partial<typeof TOOL_LIMITS> & { network?: boolean; env?: Record<string, string> } = {},
  ): Promise<ToolResult> => {
    const confinement = sandbox.confine({
      readOnly: [[join(folder.path, 'given'), '/given']],
      writable: [[work, '/work']],
      network,
      tmpMb: 2,
      changesAttributes: true,
    });
    await confinement.handOver(work);
    return runTool({
      confinement,
      file: '/bin/sh',
      args: ['-c', script],
      cwd: work,
      env: { PATH: '/usr/bin:/bin', ...env },
      limits: { ...TOOL_LIMITS, ...limits },
      writable: [work],
    });
  };
  const python = async (script: string, options?: Parameters<typeof sh>[1]) => {
    await writeFile(join(folder.path, 'given', 'script.py'), script);
    return sh(`exec python3 '${join(folder.path, 'given', 'script.py')}'`, options);
  };

  it('lets a program under Landlock read given files, system programs, libraries, and nothing else', async () => {
    const { stdout } = await sh(`cat '${folder.path}/given/file'; ls /usr > /dev/null && echo usr`);
    expect(stdout).to.equal('given\nusr\n');
    const closed = [
      `${folder.path}/secret`,
      `${folder.path}/given/../secret`,
      folder.path,
      process.cwd(),
      ...['/etc/passwd', '/etc', '/', '/root', '/home', '/var/log', '/sys', '/tmp', '/proc', '/dev'],
      ...['/proc/self/net/tcp', '/proc/self/net/unix', '/proc/self/mountinfo', '/proc/self/task'],
      ...['cmdline', 'environ', 'mem', 'maps', 'status', 'root', 'fd', 'cwd'].map(
        (name) => `/proc/${process.pid}/${name}`,
      ),
    ];
    const { stdout: read } = await sh(
      closed.map((path) => `(cat '${path}' || ls '${path}/') 2>&- && echo '${path}'`).join('\n'),
    );
    expect(read).to.equal('');
  });

  it('lets a program under Landlock write only to writable folders', async () => {
    const { stdout } = await sh(
      `echo mine > made && echo made
       for f in / /tmp /var/tmp /dev/shm /usr /etc '${folder.path}' '${folder.path}/given'; do (: > "$f/x") && echo "$f"; done`,
    );
    expect(stdout).to.equal('made\n');
    expect(await readFile(join(work, 'made'), 'utf8')).to.equal('mine\n');
    if (HAS_UNTRUSTED_USERS) expect(isUserOfProgram((await stat(join(work, 'made'))).uid)).to.equal(true);
  });

  it('runs a program under Landlock without privileges, and prevents gaining any', async () => {
    const { stdout } = await python(`
import os
lines = dict(line.split(':', 1) for line in open('/proc/self/status'))
print(os.getuid() != 0, *[lines[name].strip() for name in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp')])`);
    const none = '0000000000000000';
    expect(stdout.trim().split(' ')).to.deep.equal([
      ...['True', none, none, none],
      // Without root, what is bounded cannot be had anyway.
      ...[HAS_UNTRUSTED_USERS ? none : stdout.trim().split(' ')[4], '1', '2'],
    ]);
  });

  it('gives a program under Landlock no network and no abstract sockets, unless allowed', async () => {
    const port = await freePort();
    const servers: Server[] = [];
    const listen = (at: object) =>
      new Promise<void>((resolve) => {
        servers.push(createServer((socket) => socket.end('reached\n')).listen(at, resolve));
      });
    const name = `edge-landlock-test-${process.pid}`;
    await listen({ port, host: '127.0.0.1' });
    await listen({ path: `\0${name}` });
    const reach = `
import errno, socket
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', ${port})),
    (socket.AF_INET, socket.SOCK_DGRAM, ('127.0.0.1', 53)),
    (socket.AF_INET6, socket.SOCK_STREAM, ('::1', ${port})),
    (socket.AF_UNIX, socket.SOCK_STREAM, '\\0${name}'.ljust(108, '\\0')),
):
    try:
        s = socket.socket(family, kind)
        s.connect(address)
        print(s.recv(100).decode().strip() if kind == socket.SOCK_STREAM else 'made')
    except OSError as error:
        print(errno.errorcode[error.errno])
try:
    print(socket.getaddrinfo('db.example', 80))
except OSError as error:
    print('no name')
`;
    try {
      expect((await python(reach)).stdout.split('\n')).to.deep.equal([
        ...['ENETUNREACH', 'ENETUNREACH', 'ENETUNREACH', 'EPERM', 'no name', ''],
      ]);
      const [tcp, udp, , abstract] = (await python(reach, { network: true })).stdout.split('\n');
      expect([tcp, udp, abstract]).to.deep.equal(['reached', 'made', 'reached']);
    } finally {
      for (const server of servers) server.close();
    }
  });

  it('lets a program under Landlock signal and trace no process but its own', async () => {
    const { stdout } = await python(`
import ctypes, os, signal, subprocess
libc = ctypes.CDLL(None, use_errno=True)
for pid in (${process.pid}, os.getppid()):
    try:
        os.kill(pid, 0)
        print('signalled', pid)
    except OSError as error:
        print(type(error).__name__)
# All that it may signal but itself: none.
os.kill(-1, signal.SIGKILL)
print(libc.ptrace(16, ${process.pid}, 0, 0))
child = subprocess.Popen(['sleep', '100'])
child.kill()
print(child.wait())`);
    expect(stdout.trim().split('\n')).to.deep.equal(['PermissionError', 'PermissionError', '-1', '-9']);
  });

  it('leaves no process of a program under Landlock that ends or exceeds its time limit', async () => {
    const mark = `LANDLOCK_TEST=${process.pid}`;
    const left = () => processesWith(`${mark}\0`);
    const env = { LANDLOCK_TEST: String(process.pid) };
    const family = `for i in 1 2 3; do sleep 1000 & (setsid sleep 1000 > /dev/null 2>&1 &)
      (sleep 1000 > /dev/null 2>&1 &); done;`;
    expect(await sh(`${family} echo done`, { env })).to.deep.include({ outcome: 'exited', stdout: 'done\n' });
    await eventually(() => expect(left()).to.deep.equal([]));
    expect((await sh(`${family} sleep 1000`, { env, timeoutMs: 500 })).outcome).to.equal('timed-out');
    await eventually(() => expect(left()).to.deep.equal([]));
  });

  it('refuses system calls under Landlock that break the isolation or that no program needs', async () => {
    const { stdout, stderr } = await python(`
import ctypes, errno, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(number, *arguments):
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(number, *arguments) == -1 else 'done'
print(*{attempt(number, -1, -1, -1, -1, -1) for number in ${JSON.stringify(REFUSED_CALLS)}})
print(*{attempt(${process.arch === 'arm64' ? 220 : 56}, flag | 17, 0, 0, 0, 0) for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)})
print(attempt(435, 0, 0), *{attempt(number, 0, 0, 0, 0, 0) for number in range(463, 512)}, attempt(0x40000000 + 39))
print(*(attempt(${MADVISE}, 0, 0, advice) for advice in (9, 4)), *(attempt(${FALLOCATE}, -1, mode, 0, 1) for mode in (3, 0)))
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
print(libc.prctl(1, 0, 0, 0, 0), libc.prctl(1, 9, 0, 0, 0))
for family in (socket.AF_VSOCK, socket.AF_PACKET, 38):
    try:
        socket.socket(family, socket.SOCK_DGRAM)
        print('made')
    except OSError as error:
        print(errno.errorcode[error.errno])
for family in (socket.AF_INET, 40):
    pair = (ctypes.c_int * 2)()
    print('pair' if libc.socketpair(family, 1, 0, pair) == 0 else errno.errorcode[ctypes.get_errno()])
libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_char_p]
print(libc.ioctl(socket.socket(socket.AF_UNIX).fileno(), 0x8927, b'lo'.ljust(40, b'\\0')))
# Of another process: limits, processors, priority. Of itself: as it likes.
for call in ((libc.prlimit, ${process.pid}, 7, None, None), (libc.sched_setaffinity, ${process.pid}, 8, b'\\1'.ljust(8, b'\\0')),
             (libc.setpriority, 0, ${process.pid}, 19), (libc.setpriority, 2, 0, 19), (libc.sched_setaffinity, 0, 8, b'\\1'.ljust(8, b'\\0'))):
    print(call[0](*call[1:]), end=' ')
print()
for flags in (mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS):
    try:
        mmap.mmap(-1, 4096, flags)
        print('made')
    except OSError as error:
        print(errno.errorcode[error.errno])
try:
    open('/dev/zero', 'rb')
except OSError as error:
    print(errno.errorcode[error.errno])`);
    expect({ stdout: stdout.split('\n'), stderr }).to.deep.equal({
      stdout: [
        ...['EPERM', 'EPERM', 'ENOSYS ENOSYS ENOSYS', 'EPERM done EPERM EBADF', '-1 0'],
        ...['EAFNOSUPPORT', 'EAFNOSUPPORT', 'EAFNOSUPPORT'],
        ...['ENETUNREACH', 'EAFNOSUPPORT', '-1', '-1 -1 -1 -1 0 ', 'EPERM', 'made', 'EACCES', ''],
      ],
      stderr: '',
    });
  });

  it('hides paths below system folders under Landlock', async function () {
    if (process.getuid?.() !== 0) this.skip();
    // The second is below /lib as well, on systems where that is a link.
    const hidden = ['/usr/share/doc', '/usr/lib/os-release'];
    const hiding = await openSandbox('landlock', createTestLog().log, hidden);
    const confinement = hiding.confine({
      readOnly: [],
      writable: [],
      network: false,
      tmpMb: 1,
      changesAttributes: true,
    });
    const { stdout } = await runTool({
      confinement,
      file: '/bin/sh',
      args: [
        '-c',
        `ls ${hidden[0]}; cat ${hidden[1]} /lib/os-release; ls /usr/share/zoneinfo > /dev/null && echo zones; ls /usr/bin > /dev/null && echo programs`,
      ],
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
      limits: TOOL_LIMITS,
      writable: [],
    });
    expect(stdout).to.equal('zones\nprograms\n');
  });
});
