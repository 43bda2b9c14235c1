/**
 * Ways out of a sandbox of the kinds that Landlock's own tests are about (tools/testing/selftests/landlock in Linux),
 * and those of gVisor (test/syscalls/linux), at each level: links, open files, terminals, sockets, signals. Mounts,
 * namespaces, processes and files by their paths are in `sandbox.test.ts` and `landlock.test.ts`.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { runTool } from '../../src/build/run-tool.js';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.js';
import { CONFINING } from '../support/hostile/attacks.js';
import { createTestLog } from '../support/log.js';
import { type SandboxFolder, sandboxFolder } from '../support/sandbox-folder.js';
import { TOOL_LIMITS } from '../support/tool-limits.js';

/** Says what was possible, and what was refused for another reason than that it is not allowed, or not there. */
const ATTEMPT = `
import array, ctypes, errno, fcntl, os, signal, socket, termios
libc = ctypes.CDLL(None, use_errno=True)
REFUSALS = {errno.EACCES, errno.EPERM, errno.EXDEV, errno.ENOENT, errno.EROFS, errno.ENOSYS, errno.EBADF, errno.ENXIO,
            errno.ESRCH, errno.EAFNOSUPPORT, errno.ENETUNREACH, errno.ENOTTY}
def attempt(name, make):
    try:
        print('POSSIBLE', name, make())
    except OSError as error:
        if error.errno not in REFUSALS: print(name, errno.errorcode[error.errno])
def call(number, *arguments):
    result = libc.syscall(number, *arguments)
    if result == -1: raise OSError(ctypes.get_errno(), '')
    return result
read = lambda path: open(path).read()
`;

for (const level of CONFINING)
  describe(`ways out of the sandbox, at the level ${level}`, () => {
    let sandbox: Sandbox;
    let folder: SandboxFolder;
    let work: string;
    before(async () => {
      sandbox = await openSandbox(level === 'namespaces' ? 'required' : level, createTestLog().log);
      expect(sandbox.level).to.equal(level);
      folder = await sandboxFolder('escapes');
      work = folder.work;
    });
    after(() => folder.remove());

    /** Runs a script, to which `given` is a file that it may read. */
    async function python(script: string, network: boolean): Promise<{ stdout: string; stderr: string }> {
      const confinement = sandbox.confine({
        readOnly: [[join(folder.path, 'given'), '/given']],
        writable: [[work, '/work']],
        network,
        tmpMb: 2,
        changesAttributes: true,
      });
      await confinement.handOver(work);
      const given = confinement.inside(join(folder.path, 'given'));
      const whole = `${ATTEMPT}given, outside = '${given}/file', '${folder.path}'\nsecret = outside + '/secret'\n${script}`;
      await writeFile(join(folder.path, 'given', 'script.py'), whole);
      return runTool({
        confinement,
        file: '/usr/bin/env',
        args: ['python3', `${given}/script.py`],
        cwd: confinement.inside(work),
        env: { PATH: '/usr/bin:/bin' },
        limits: TOOL_LIMITS,
        writable: [work],
      });
    }

    /** Nothing that the script attempts is possible. */
    async function expectNothing(script: string, network = false): Promise<void> {
      const { stdout, stderr } = await python(script, network);
      expect({ stdout, stderr }).to.deep.equal({ stdout: '', stderr: '' });
    }

    it(`prints what a script in the sandbox can do, so that tests of escapes can fail (level ${level})`, async () => {
      const { stdout } = await python("attempt('given', lambda: read(given).strip())", false);
      expect(stdout).to.equal('POSSIBLE given given\n');
    });

    it(`lets no program leave the sandbox by links, other names of files, or what is open (level ${level})`, async () => {
      await expectNothing(`
for descriptor in range(3, 64):
    attempt('inherited descriptor', lambda: os.fstat(descriptor))
os.symlink(secret, 'link')
attempt('symbolic link', lambda: read('link'))
attempt('hard link', lambda: os.link(secret, 'hard'))
attempt('hard link of a given file', lambda: os.link(given, 'hard'))
attempt('hard link out', lambda: os.link('link', outside + '/out', follow_symlinks=False))
attempt('rename out', lambda: os.rename('link', outside + '/out'))
attempt('rename in', lambda: os.rename(given, 'in'))
attempt('exchange', lambda: call(${process.arch === 'arm64' ? 276 : 316}, -100, b'link', -100, given.encode(), 2))
attempt('/proc/self/cwd', lambda: read('/proc/self/cwd/../secret'))
attempt('/proc/self/root', lambda: read('/proc/self/root' + secret))
attempt('parent', lambda: read('../secret'))
attempt('folder that is open', lambda: os.open('secret', os.O_RDONLY, dir_fd=os.open(outside, os.O_PATH)))
attempt('reopened', lambda: read('/proc/self/fd/%d' % os.open(secret, os.O_PATH)))
attempt('reopened for writing', lambda: open('/proc/self/fd/%d' % os.open(given, os.O_RDONLY), 'w'))
attempt('file without a name', lambda: os.open(os.path.dirname(given), os.O_TMPFILE | os.O_RDWR))
attempt('truncate', lambda: os.truncate(given, 0))
attempt('truncate while opening', lambda: os.open(given, os.O_RDONLY | os.O_TRUNC))
attempt('neither reading nor writing, but emptying', lambda: os.open(given, 3 | os.O_TRUNC))
attempt('remove', lambda: os.remove(given))
attempt('folder', lambda: os.mkdir(outside + '/made'))
attempt('device', lambda: os.mknod('device', 0o600 | 0o020000, os.makedev(1, 3)))
attempt('attributes', lambda: os.chmod(given, 0o777))
attempt('owner', lambda: os.chown(given, os.getuid(), -1))
attempt('root', lambda: os.chroot('.'))
attempt('user', lambda: os.setuid(0))
attempt('groups', lambda: os.setgroups([0]))
attempt('program of another', lambda: os.execv(secret, ['x']))
attempt('messages of the kernel', lambda: read('/proc/kmsg'))
def addresses():
    known = [line for line in open('/proc/kallsyms') if int(line.split()[0], 16)]
    return known[0] if known else os.stat('/no/addresses')
attempt('addresses of the kernel', addresses)
for path in ('/proc/sys/kernel/core_pattern', '/proc/sysrq-trigger', '/proc/self/uid_map',
             '/sys/kernel/uevent_helper', '/sys/fs/cgroup/cgroup.procs', '/dev/mem', '/dev/kmsg', '/dev/fuse', '/dev/vda'):
    attempt(path, lambda: open(path, 'w'))
`);
      expect(await readFile(join(folder.path, 'given', 'file'), 'utf8')).to.equal('given\n');
    });

    it(`lets no program in the sandbox open a terminal, or type into one (level ${level})`, async () => {
      await expectNothing(`
attempt('/dev/tty', lambda: os.open('/dev/tty', os.O_RDWR))
attempt('/dev/ptmx', lambda: os.open('/dev/ptmx', os.O_RDWR))
attempt('/dev/console', lambda: os.open('/dev/console', os.O_RDWR))
for stream in range(3):
    attempt('TIOCSTI', lambda: fcntl.ioctl(stream, termios.TIOCSTI, b'x'))
    attempt('TIOCLINUX', lambda: fcntl.ioctl(stream, 0x541c, b'\\2'))
`);
    });

    const SOCKETS = `
for name, family, kind, protocol in (
    ('TCP', socket.AF_INET, socket.SOCK_STREAM, 0), ('MPTCP', socket.AF_INET, socket.SOCK_STREAM, 262),
    ('SCTP', socket.AF_INET, socket.SOCK_STREAM, 132), ('SMC', 43, socket.SOCK_STREAM, 0),
    ('UDP', socket.AF_INET, socket.SOCK_DGRAM, 0), ('ICMP', socket.AF_INET, socket.SOCK_DGRAM, 1),
    ('raw', socket.AF_INET, socket.SOCK_RAW, 255), ('UDP of IPv6', socket.AF_INET6, socket.SOCK_DGRAM, 0),
    ('routes', socket.AF_NETLINK, socket.SOCK_RAW, 0), ('sockets of all', socket.AF_NETLINK, socket.SOCK_RAW, 4),
    ('packet filters', socket.AF_NETLINK, socket.SOCK_RAW, 12), ('audit', socket.AF_NETLINK, socket.SOCK_RAW, 9),
    ('packets', socket.AF_PACKET, socket.SOCK_RAW, 0), ('vsock', 40, socket.SOCK_STREAM, 0),
    ('ciphers of the kernel', 38, socket.SOCK_SEQPACKET, 0), ('keys', 15, socket.SOCK_RAW, 2),
    ('CAN', 29, socket.SOCK_RAW, 1), ('TIPC', 30, socket.SOCK_STREAM, 0), ('Bluetooth', 31, socket.SOCK_RAW, 1),
    ('XDP', 44, socket.SOCK_RAW, 0), ('RDS', 21, socket.SOCK_SEQPACKET, 0), ('QIPCRTR', 42, socket.SOCK_DGRAM, 0)):
`;

    it(`lets no program in the sandbox open a socket, of whatever family and protocol (level ${level})`, async () => {
      await expectNothing(`${SOCKETS}    attempt(name, lambda: socket.socket(family, kind, protocol))`);
    });

    it(`lets programs with a network open only sockets of the internet and of routes (level ${level})`, async () => {
      await expectNothing(
        `${SOCKETS}    if family not in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK) or kind == socket.SOCK_RAW and family == socket.AF_INET:
        attempt(name, lambda: socket.socket(family, kind, protocol))`,
        true,
      );
    });

    it(`lets no sandboxed program signal other processes, or read their kernel data (level ${level})`, async () => {
      const [tgkill, queue, openPid, signalPid] =
        process.arch === 'arm64' ? [131, 138, 434, 424] : [234, 129, 434, 424];
      await expectNothing(`
import resource
for pid in (${process.pid},):
    information = (ctypes.c_int * 32)(0, 0, -1)
    attempt('tgkill', lambda: call(${tgkill}, pid, pid, 0))
    attempt('rt_sigqueueinfo', lambda: call(${queue}, pid, 0, information))
    attempt('pidfd', lambda: call(${signalPid}, call(${openPid}, pid, 0), 0, 0, 0))
    attempt('group', lambda: os.killpg(pid, 0))
    attempt('limits', lambda: resource.prlimit(pid, resource.RLIMIT_NOFILE))
    attempt('memory', lambda: open('/proc/%d/mem' % pid, 'r+b'))
    attempt('root', lambda: os.listdir('/proc/%d/root/' % pid))
    attempt('descriptors', lambda: os.listdir('/proc/%d/fd' % pid))
# A signal of a socket, to its owner: that this process is still there is what shows that it did not come.
here, there = socket.socketpair()
try:
    fcntl.fcntl(here, fcntl.F_SETOWN, ${process.pid})
    fcntl.fcntl(here, fcntl.F_SETFL, fcntl.fcntl(here, fcntl.F_GETFL) | os.O_ASYNC)
    there.send(b'x')
except OSError as error:
    if error.errno not in REFUSALS: raise
`);
    });
  });
