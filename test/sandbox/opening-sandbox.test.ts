/** Which level of the sandbox a process takes, by what works on its machine. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { openSandbox } from '../../src/sandbox/sandbox.js';
import { createTestLog } from '../support/log.js';
import { asOtherUser, pathForOtherUser } from '../support/other-user.js';

describe('opening the sandbox', () => {
  /** Opens it in a process of its own. Returns what it logs, or its error. */
  const opened = async (mode: string, ...wrapper: readonly string[]) => {
    const url = new URL('../../src/sandbox/sandbox.js', import.meta.url);
    const path = wrapper[0] === 'unshare' ? pathForOtherUser(url) : url.href;
    const module = `
      import { openSandbox } from '${path}';
      const say = ({ sandbox }, text) => console.log(sandbox + ': ' + text);
      await openSandbox('${mode}', { info: say, warn: say, debug: () => undefined }).catch((error) => console.log(error.message));`;
    const [file = '', ...args] = [...wrapper, process.execPath, '--input-type=module', '-e', module];
    return (await promisify(execFile)(file, args)).stdout;
  };
  const without = (capability: string) => [
    'setpriv',
    `--bounding-set=-${capability}`,
    `--inh-caps=-${capability}`,
  ];

  it('uses resource limits only, with a warning, when the sandbox is switched off', async () => {
    const { log, lines } = createTestLog();
    const sandbox = await openSandbox('off', log);
    expect(sandbox.level).to.equal('limits');
    const [said, ...more] = lines.filter((line) => 'sandbox' in line);
    expect(more).to.deep.equal([]);
    expect(said).to.include({ sandbox: 'limits', level: 40 });
    expect(said?.msg).to.match(/switched off/);
  });

  it('uses Landlock where namespaces are not available, and says why', async function () {
    if (process.getuid?.() !== 0) this.skip();
    expect(await opened('required', ...without('sys_admin'))).to.match(
      /^landlock: sandbox works; the level `namespaces` does not work here: namespaces: EPERM.*CAP_SYS_ADMIN/,
    );
  });

  it('uses Landlock when this process cannot access the files of programs in namespaces', async function () {
    // Without root, the creator of the user namespace has access.
    if (process.getuid?.() !== 0) this.skip();
    expect(await opened('auto', ...without('sys_ptrace'))).to.match(
      /^landlock: .*`namespaces` does not work here: its \/tmp cannot be reached .*CAP_SYS_PTRACE/,
    );
  });

  it('uses Landlock when SANDBOX is landlock', async () => {
    expect(await opened('landlock')).to.equal('landlock: sandbox works\n');
  });

  it('uses namespaces where there is no Landlock', async () => {
    expect(await opened('required', ...WITHOUT_LANDLOCK)).to.equal('namespaces: sandbox works\n');
  });

  it('gives each program a network of its own where no namespace can be entered, and says so', async () => {
    expect(await opened('required', ...WITHOUT_SETNS)).to.match(
      /^namespaces: sandbox works\n.*each program without a network gets one of its own/,
    );
  });

  for (const mode of ['required', 'landlock'])
    it(`refuses SANDBOX=${mode} when there are neither namespaces nor Landlock`, async function () {
      if (process.getuid?.() !== 0) this.skip();
      expect(await opened(mode, ...without('sys_admin'), ...WITHOUT_LANDLOCK)).to.match(
        new RegExp(`^SANDBOX is "${mode}", but .*\`landlock\` does not work here: .*no Landlock`),
      );
    });

  it('refuses to run programs as its own user without a sandbox, unless that is switched off', async () => {
    const asUser = process.getuid?.() === 0 ? asOtherUser(64_100) : [];
    const nothing = [...asUser, ...WITHOUT_NAMESPACES, ...WITHOUT_LANDLOCK];
    expect(await opened('auto', ...nothing)).to.match(
      /^Nothing keeps untrusted programs from .*`namespaces` does not work.*no Landlock.* set SANDBOX=off$/m,
    );
    expect(await opened('off', ...nothing)).to.equal(
      'limits: sandbox switched off: untrusted programs can read what this process can\n',
    );
  });

  it('continues as root without a sandbox, with a warning, when it is not required', async function () {
    if (process.getuid?.() !== 0) this.skip();
    expect(await opened('auto', ...without('sys_admin'), ...WITHOUT_LANDLOCK)).to.match(
      /^limits: no sandbox, .*no Landlock/,
    );
  });

  it('refuses to run programs as root when root may not start them as other users', async function () {
    if (process.getuid?.() !== 0) this.skip();
    for (const capability of ['kill', 'fowner', 'setuid'])
      expect(await opened('auto', ...without(capability))).to.match(
        /^Untrusted programs would run as root: /,
      );
  });
});

/** Runs a program with a filter of system calls. @param instructions in Python, see seccomp(2) */
function filtered(instructions: string): string[] {
  return [
    '/usr/bin/python3',
    '-c',
    `
import ctypes, os, platform, struct, sys
LOAD, EQUAL, AT_LEAST, ABOVE, HAS, RETURN = 0x20, 0x15, 0x35, 0x25, 0x45, 0x06
CLONE, SETNS = (56, 308) if platform.machine() == 'x86_64' else (220, 268)
instructions = ${instructions}
code = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *one) for one in instructions))
class Program(ctypes.Structure):
    _fields_ = [('len', ctypes.c_ushort), ('filter', ctypes.c_void_p)]
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Program(len(instructions), ctypes.addressof(code)))) == 0
os.execvp(sys.argv[1], sys.argv[1:])
`,
  ];
}

/** As on a kernel without Landlock: its system calls do not exist. */
const WITHOUT_LANDLOCK = filtered(
  '[(LOAD, 0, 0, 0), (AT_LEAST, 0, 2, 444), (ABOVE, 1, 0, 446), (RETURN, 0, 0, 0x00050000 | 38), (RETURN, 0, 0, 0x7fff0000)]',
);

/** As in containers whose filter refuses to enter namespaces. */
const WITHOUT_SETNS = filtered(
  '[(LOAD, 0, 0, 0), (EQUAL, 0, 1, SETNS), (RETURN, 0, 0, 0x00050000 | 1), (RETURN, 0, 0, 0x7fff0000)]',
);

/** As where users may have no namespaces. */
const WITHOUT_NAMESPACES = filtered(
  '[(LOAD, 0, 0, 0), (EQUAL, 0, 3, CLONE), (LOAD, 0, 0, 16), (HAS, 0, 1, 0x10000000), (RETURN, 0, 0, 0x00050000 | 1), (RETURN, 0, 0, 0x7fff0000)]',
);
