/** Access of a program at the level `namespaces`. */
import { existsSync } from 'node:fs';
import { readdir, readFile, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { constants, getPriority } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { runTool, type ToolResult } from '../../src/build/run-tool.js';
import type { Confinement } from '../../src/sandbox/confinement.js';
import { spawnLimited } from '../../src/sandbox/limited-process.js';
import { openSandbox, type Sandbox } from '../../src/sandbox/sandbox.js';
import { isUserOfProgram } from '../../src/util/untrusted-users.js';
import { eventually } from '../support/eventually.js';
import { createTestLog } from '../support/log.js';
import { freePort } from '../support/ports.js';
import { descendantsOf, isRunning } from '../support/process-state.js';
import { FALLOCATE, MADVISE, REFUSED_CALLS } from '../support/refused-calls.js';
import { type SandboxFolder, sandboxFolder } from '../support/sandbox-folder.js';
import { TOOL_LIMITS } from '../support/tool-limits.js';

describe('the sandbox', () => {
  let sandbox: Sandbox;
  let folder: SandboxFolder;
  let work: string;

  before(async () => {
    sandbox = await openSandbox('required', createTestLog().log);
    expect(sandbox.level).to.equal('namespaces');
    folder = await sandboxFolder('sandbox');
    work = folder.work;
  });
  after(() => folder.remove());

  const confine = async (network = false): Promise<Confinement> => {
    const confinement = sandbox.confine({
      readOnly: [
        [join(folder.path, 'given'), '/given'],
        [join(folder.path, 'given', 'file'), '/etc/deep/er/file'],
      ],
      writable: [[work, '/work']],
      network,
      tmpMb: 2,
      changesAttributes: true,
    });
    await confinement.handOver(work);
    return confinement;
  };
  const sh = async (
    script: string,
    { network = false, ...limits }: Partial<typeof TOOL_LIMITS> & { network?: boolean } = {},
  ): Promise<ToolResult> =>
    runTool({
      confinement: await confine(network),
      file: '/bin/sh',
      args: ['-c', script],
      cwd: '/work',
      env: { PATH: '/usr/bin:/bin' },
      limits: { ...TOOL_LIMITS, ...limits },
      writable: [work],
    });

  it('shows a program in the sandbox what was given, and nothing else of this machine', async () => {
    const { stdout } = await sh('cat /given/file /etc/deep/er/file; ls /; ls /etc /tmp /dev/shm /work');
    expect(stdout).to.match(/^given\ngiven\n/);
    const links = ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32'];
    const known = new Set([
      'dev',
      'etc',
      'given',
      'proc',
      'tmp',
      'usr',
      'work',
      'ld.so.cache',
      'deep',
      'given:',
      ...links,
    ]);
    const seen = stdout.split('\n').filter((line) => line !== '' && !line.endsWith(':'));
    expect(seen.filter((name) => !known.has(name))).to.deep.equal([]);
    for (const path of [
      `${folder.path}/secret`,
      '/given/../secret',
      '/work/../secret',
      '/etc/passwd',
      '/root',
      '/sys',
    ])
      expect((await sh(`cat ${path} || ls ${path}`)).stdout, path).to.equal('');
  });

  it('lets a sandboxed program enter the folders above given files, whatever the umask of the gateway', async () => {
    const umask = process.umask(0o077);
    try {
      expect((await sh('cat /etc/deep/er/file')).stdout).to.equal('given\n');
    } finally {
      process.umask(umask);
    }
  });

  it('lets a program in the sandbox write only to writable folders', async () => {
    const { stdout } = await sh(
      'echo mine > /work/made; echo mine > /tmp/made && echo tmp; for f in / /usr /given /etc /dev /dev/shm /proc/sys; do echo x > $f/x && echo "$f"; done',
    );
    expect(stdout).to.equal('tmp\n');
    expect(await readFile(join(work, 'made'), 'utf8')).to.equal('mine\n');
    expect(await readdir(join(folder.path, 'given'))).to.deep.equal(['file']);
    if (process.getuid?.() === 0)
      expect(isUserOfProgram((await stat(join(work, 'made'))).uid)).to.equal(true);
  });

  it('runs a program in the sandbox without privileges, and prevents gaining any', async () => {
    const { stdout } = await sh('id -u; grep -E "^(Cap|NoNewPrivs|Seccomp:|Groups)" /proc/self/status');
    const lines = stdout.split('\n').map((line) => line.replace(/\s+/g, ' ').trim());
    expect(lines[0]).not.to.equal('0');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb'])
      expect(lines).to.include(`${set}: 0000000000000000`);
    expect(lines).to.include('NoNewPrivs: 1');
  });

  it('gives a program in the sandbox the lowest priority, which it cannot change', async () => {
    const nice = Math.min(19, getPriority() + 10);
    const { stdout } = await sh(`
      for f in oom_score_adj autogroup; do echo 0 > /proc/self/$f && echo "changed $f"; done
      nice -n -5 nice; nice; cat /proc/self/oom_score_adj
      tries=0
      while [ -e /proc/self/autogroup ] && [ $tries -lt 100 ]; do
        grep -o 'nice ${nice}' /proc/self/autogroup && break
        sleep 0.1; tries=$((tries + 1))
      done`);
    const session = existsSync('/proc/self/autogroup') ? [`nice ${nice}`] : [];
    expect(stdout.trim().split('\n')).to.deep.equal([`${nice}`, `${nice}`, '1000', ...session]);
  });

  it('shows a program in the sandbox only its own processes, and lets it kill no others', async () => {
    const { stdout } = await sh(
      'echo $$; echo /proc/[0-9]*; tr "\\0" "\\n" < /proc/1/environ; kill -9 -1; echo on',
    );
    const [self, processes = '', ...rest] = stdout.trim().split('\n');
    expect(self).to.equal('1');
    expect(processes.split(' ').length).to.be.below(4);
    expect(rest.at(-1)).to.equal('on');
    expect(rest.join()).not.to.match(/DATABASE_URL|HOME=/);
  });

  it('gives a program in the sandbox no network and no abstract sockets, unless allowed', async () => {
    const port = await freePort();
    const servers: Server[] = [];
    const listen = (at: object) =>
      new Promise<void>((resolve) => {
        const server = createServer((socket) => socket.end('reached\n')).listen(at, resolve);
        servers.push(server);
      });
    const name = `edge-sandbox-test-${process.pid}`;
    await listen({ port, host: '127.0.0.1' });
    await listen({ path: `\0${name}` });
    const reach = `
import socket
for family, address in ((socket.AF_INET, ('127.0.0.1', ${port})), (socket.AF_UNIX, '\\0${name}'.ljust(108, '\\0'))):
    try:
        s = socket.socket(family)
        s.connect(address)
        print(s.recv(100).decode(), end='')
    except OSError as error:
        print(error.errno)
`;
    const run = (network: boolean) =>
      sh(`cat > /tmp/r.py <<'EOT'${reach}EOT\npython3 /tmp/r.py`, { network });
    try {
      expect((await run(false)).stdout).to.match(/^(101|111)\n111\n$/);
      expect((await run(true)).stdout).to.equal('reached\nreached\n');
    } finally {
      for (const server of servers) server.close();
    }
  });

  it('keeps programs without a network from each other, although they share one', async () => {
    const name = `\\0edge-sandbox-test-${process.pid}`;
    const identity = `import os, socket; print(os.stat('/proc/self/ns/net').st_ino)`;
    const listener = spawnLimited({
      confinement: await confine(),
      file: '/usr/bin/python3',
      args: [
        '-uc',
        `${identity}; s = socket.socket(socket.AF_UNIX); s.bind('${name}'); s.listen(); print('ready'); input()`,
      ],
      ...{ cwd: '/', env: {}, limits: TOOL_LIMITS, stdio: ['pipe', 'pipe', 'ignore'] },
    });
    try {
      let said = '';
      listener.stdout?.on('data', (chunk: Buffer) => {
        said += chunk.toString();
      });
      await eventually(async () => expect(said).to.match(/ready/));
      const { stdout } = await sh(
        `python3 -c "${identity}; print(socket.socket(socket.AF_UNIX).connect_ex('${name}'))"`,
      );
      const [network, errno] = stdout.trim().split('\n');
      expect(said).to.include(network);
      // Its tables would show the sockets of others.
      const tables = await sh('cat /proc/self/net/* /proc/self/net/*/*');
      expect(tables.stdout).to.equal('');
      expect(Number(errno)).to.equal(constants.errno.EPERM);
    } finally {
      await listener.kill();
    }
  });

  it('limits memory in files, file size, open files, processes and CPU time of a program', async () => {
    const files = await sh(
      'head -c 3000000 /dev/zero > /tmp/large; echo $?; head -c 5000000 /dev/zero > /work/large; echo $?',
    );
    expect(files.stdout).to.match(/^[1-9]\d*\n[1-9]\d*\n$/);
    const { stdout } = await sh('ulimit -v; ulimit -f; ulimit -n; ulimit -c; ulimit -t');
    expect(stdout.trim().split('\n')).to.deep.equal([String(1024 * 1024), '8192', '64', '0', '20']);
    const bomb = await sh('i=0; while [ $i -lt 40 ]; do sleep 100 & i=$((i + 1)); done; echo all');
    expect(bomb.stderr).to.match(/fork|Resource temporarily unavailable/i);
    expect(bomb.stdout).to.equal('');
    expect(await sh('while :; do :; done', { cpuSeconds: 1 })).to.include({
      outcome: 'exited',
      signal: 'SIGKILL',
    });
  });

  it('counts files in the memory of a sandbox, even empty ones', async () => {
    const make = 'n=0; while :; do n=$((n + 1)); : > "/tmp/$n"; done';
    expect((await sh(make, { totalMemoryMb: 30 })).outcome).to.equal('over-memory');
    expect(
      (await sh('head -c 2000000 /dev/zero > /tmp/large; sleep 2', { totalMemoryMb: 30 })).outcome,
    ).to.equal('exited');
  });

  it('counts no processes of other programs when it limits those of one', async () => {
    const run = () => sh('i=0; while [ $i -lt 20 ]; do sleep 0.3 & i=$((i + 1)); done; wait; echo all');
    for (const { stdout, stderr } of await Promise.all([run(), run(), run()]))
      expect({ stdout, stderr }).to.deep.equal({ stdout: 'all\n', stderr: '' });
  });

  it('leaves no process of a program in the sandbox that ends or exceeds its time limit', async () => {
    const before = descendantsOf(process.pid).map(({ pid }) => pid);
    const left = () => descendantsOf(process.pid).filter(({ pid }) => !before.includes(pid));
    const descendants =
      'for i in 1 2 3; do env -i sleep 1000 & (env -i sleep 1000 > /dev/null 2>&1 &); done;';
    expect(await sh(`${descendants} echo done`)).to.deep.include({
      outcome: 'exited',
      exitCode: 0,
      stdout: 'done\n',
    });
    expect(left()).to.deep.equal([]);
    expect((await sh(`${descendants} sleep 1000`, { timeoutMs: 500 })).outcome).to.equal('timed-out');
    expect(left()).to.deep.equal([]);
  });

  it('reports the process id of a program in the sandbox, and the signal that ended it', async () => {
    const program = spawnLimited({
      confinement: await confine(),
      file: '/bin/sleep',
      args: ['1000'],
      cwd: '/',
      env: {},
      limits: TOOL_LIMITS,
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    const pid = (await program.pid) ?? 0;
    await eventually(async () =>
      expect(await readFile(`/proc/${pid}/cmdline`, 'utf8')).to.equal('/bin/sleep\x001000\0'),
    );
    process.kill(pid, 'SIGKILL');
    expect(await program.ended).to.deep.equal({ code: null, signal: 'SIGKILL' });
    expect(isRunning(pid)).to.equal(false);
    await program.kill();
  });

  it('ends a program with its monitor even if it clears its parent death signal', async function () {
    // Without root, the program has no separate user, by which its processes are found.
    if (process.getuid?.() !== 0) this.skip();
    const hide =
      'import os, threading\nthreading.Thread(target=os.execve, args=("/bin/sleep", ["sleep", "1000"], {})).start()';
    const program = spawnLimited({
      confinement: await confine(),
      file: '/usr/bin/python3',
      args: ['-c', hide],
      cwd: '/',
      env: {},
      limits: TOOL_LIMITS,
      stdio: ['ignore', 'ignore', 'ignore'],
    });
    const pid = (await program.pid) ?? 0;
    const status = () => readFile(`/proc/${pid}/status`, 'utf8');
    await eventually(async () => expect(await status()).to.match(/^Name:\s+sleep$/m));
    expect(await readFile(`/proc/${pid}/environ`, 'utf8')).to.equal('');
    const monitor = Number(/^PPid:\s+(\d+)/m.exec(await status())?.[1]);
    process.kill(monitor, 'SIGKILL');
    await program.ended;
    await eventually(() => expect(isRunning(pid)).to.equal(false));
  });

  it('refuses system calls in the sandbox that break the isolation or that no program needs', async () => {
    const CLONE_NEWUSER = 0x1000_0000;
    const tries = `
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def attempt(number, *arguments):
    return errno.errorcode[ctypes.get_errno()] if libc.syscall(number, *arguments) == -1 else 'done'
print(*{attempt(number, -1, -1, -1, -1, -1) for number in ${JSON.stringify(REFUSED_CALLS)}})
print(attempt(${process.arch === 'arm64' ? 220 : 56}, ${CLONE_NEWUSER} | 17, 0, 0, 0, 0))
print(attempt(435, 0, 0))
print(*{attempt(number, 0, 0, 0, 0, 0) for number in range(463, 512)})
print(*(attempt(${MADVISE}, 0, 0, advice) for advice in (9, 4)), *(attempt(${FALLOCATE}, -1, mode, 0, 1) for mode in (3, 0)))
libc.prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
print(libc.prctl(1, 0, 0, 0, 0), libc.prctl(1, 9, 0, 0, 0), libc.prctl(3, 0, 0, 0, 0))
for family in (socket.AF_VSOCK, socket.AF_PACKET, 38):
    try:
        socket.socket(family, socket.SOCK_DGRAM)
        print('made')
    except OSError as error:
        print(errno.errorcode[error.errno])
print(os.waitstatus_to_exitcode(os.system('true')))
`;
    const { stdout, stderr } = await sh(`cat > /tmp/t.py <<'EOT'${tries}EOT\npython3 /tmp/t.py`);
    expect({ stdout, stderr }).to.deep.equal({
      stdout:
        'EPERM\nEPERM\nENOSYS\nENOSYS\nEPERM done EPERM EBADF\n-1 0 1\nEAFNOSUPPORT\nEAFNOSUPPORT\nEAFNOSUPPORT\n0\n',
      stderr: '',
    });
    const status = await sh('grep Seccomp: /proc/self/status');
    expect(status.stdout.trim()).to.equal('Seccomp:\t2');
  });

  it('refuses a program memory that belongs to no process, and memory of the kernel', async () => {
    const tries = `
import ctypes, errno, mmap
libc = ctypes.CDLL(None, use_errno=True)
def attempt(make):
    try:
        make()
        print('made')
    except OSError as error:
        print(errno.errorcode[error.errno])
def call(number):
    if number == -1: raise OSError(ctypes.get_errno(), '')
def zeros(flags):
    with open('/dev/zero', 'r+b', buffering=0) as file:
        mmap.mmap(file.fileno(), 4096, flags)
attempt(lambda: mmap.mmap(-1, 4096, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS))
attempt(lambda: zeros(mmap.MAP_SHARED))
attempt(lambda: zeros(mmap.MAP_PRIVATE))
attempt(lambda: call(libc.semget(0, 32000, 0o600)))
attempt(lambda: call(libc.msgget(0, 0o600)))
attempt(lambda: call(libc.mq_open(b'/queue', 0o102, 0o600, None)))
attempt(lambda: mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
with open('/tmp/mapped', 'w+b') as file:
    file.truncate(4096)
    attempt(lambda: mmap.mmap(file.fileno(), 4096, mmap.MAP_SHARED))
with open('/dev/zero', 'rb') as file: print(file.read(3))
`;
    const { stdout, stderr } = await sh(`cat > /tmp/t.py <<'EOT'${tries}EOT\npython3 /tmp/t.py`);
    expect({ stdout, stderr }).to.deep.equal({
      stdout: `EPERM\nENODEV\nENODEV\nEPERM\nEPERM\nEPERM\nmade\nmade\nb'${'\\x00'.repeat(3)}'\n`,
      stderr: '',
    });
  });

  it('distinguishes a sandbox that cannot be set up from a program that fails', async () => {
    expect(await sh('exit 1')).to.include({ outcome: 'exited', exitCode: 1 });
    const confinement = sandbox.confine({
      readOnly: [['/no/such', '/x']],
      writable: [],
      network: false,
      tmpMb: 1,
      changesAttributes: true,
    });
    const run = runTool({
      confinement,
      file: '/bin/true',
      args: [],
      cwd: '/',
      env: {},
      limits: TOOL_LIMITS,
      writable: [],
    });
    const error = await run.then(
      () => undefined,
      (thrown: Error) => thrown,
    );
    expect(error?.message).to.match(/sandbox could not be set up.*\/no\/such/);
  });
});
