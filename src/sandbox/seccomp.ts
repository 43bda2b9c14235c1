/**
 * The system call filter of the sandbox. It refuses calls that create namespaces or mounts, inspect other processes,
 * use kernel interfaces that no handler or compiler needs, allocate memory that no limit counts, or raise the share of
 * CPU time.
 *
 * It is a classic BPF program: https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html
 */
import { constants } from 'node:os';

/** Numbers of system calls on x86_64 and arm64; undefined where there is none. */
type Numbers = readonly [x64: number, arm64: number | undefined];

const REFUSED: Readonly<Record<string, Numbers>> = {
  // Namespaces and mounts.
  unshare: [272, 97],
  setns: [308, 268],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  statmount: [457, 457],
  listmount: [458, 458],
  // Other processes.
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  pidfd_getfd: [438, 438],
  kcmp: [312, 272],
  process_madvise: [440, 440],
  // Memory that belongs to no process and that no limit counts.
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  shmget: [29, 194],
  semget: [64, 190],
  msgget: [68, 186],
  mq_open: [240, 180],
  // The kernel gives each session a share of the CPU, so a program must not start sessions.
  setsid: [112, 157],
  // Large parts of the kernel that are not needed.
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  bpf: [321, 280],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  perf_event_open: [298, 241],
  fanotify_init: [300, 262],
  personality: [135, 92],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  syslog: [103, 116],
  modify_ldt: [154, undefined],
  uselib: [134, undefined],
  iopl: [172, undefined],
  ioperm: [173, undefined],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  // The machine as a whole.
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  adjtimex: [159, 171],
  clock_adjtime: [305, 266],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
};
const CLONE: Numbers = [56, 220];
const CLONE3: Numbers = [435, 435];
const PRCTL: Numbers = [157, 167];
const SOCKET: Numbers = [41, 198];
const MMAP: Numbers = [9, 222];
/**
 * First number of calls that are newer than this list (after `mseal`), the same on all architectures, and of the x32
 * interface. Libraries fall back when a kernel does not support a call.
 */
const FIRST_UNKNOWN = 463;

const ARCHITECTURES = {
  x64: { at: 0, audit: 0xc000_003e },
  arm64: { at: 1, audit: 0xc000_00b7 },
} as const;

/** New namespaces, as flags of `clone`. */
const CLONE_NEW = 0x7e02_0000;
const PR_SET_PDEATHSIG = 1;
const SIGKILL = constants.signals.SIGKILL;
/** Bit of MAP_SHARED and MAP_SHARED_VALIDATE, but not of MAP_PRIVATE. */
const MAP_SHARED = 0x01;
const MAP_ANONYMOUS = 0x20;
/** Unix, IPv4, IPv6 and netlink. Others are not confined by network namespaces (vsock) or not needed. */
const SOCKET_FAMILIES = [1, 2, 10, 16];
const { EPERM, ENOSYS, EAFNOSUPPORT } = constants.errno;

// Offsets in `struct seccomp_data`.
const NUMBER = 0;
const ARCHITECTURE = 4;
/** The lower half of an argument, which is enough for flags, options and families. */
const argument = (at: number) => 16 + 8 * at;

// Instructions.
const LOAD = 0x20;
const JUMP_EQUAL = 0x15;
const JUMP_AT_LEAST = 0x35;
const JUMP_ANY_BIT = 0x45;
const RETURN = 0x06;
const ALLOW = 0x7fff_0000;
const refuse = (errno: number) => 0x0005_0000 | errno;

interface Instruction {
  readonly code: number;
  readonly value: number;
  /** Instructions to skip when a comparison is true, and when it is false. */
  readonly skip?: readonly [ifTrue: number, ifFalse: number];
}

/** The filter for this machine; undefined for unsupported architectures. */
export function seccompFilter(architecture: string = process.arch): Buffer | undefined {
  if (architecture !== 'x64' && architecture !== 'arm64') return undefined;
  const { at, audit } = ARCHITECTURES[architecture];
  const refused = Object.values(REFUSED).flatMap((numbers) => numbers[at] ?? []);
  return assemble([
    { code: LOAD, value: ARCHITECTURE },
    ...unless(JUMP_EQUAL, audit, [{ code: RETURN, value: refuse(ENOSYS) }]),
    { code: LOAD, value: NUMBER },
    ...when(JUMP_AT_LEAST, FIRST_UNKNOWN, [{ code: RETURN, value: refuse(ENOSYS) }]),
    // Its flags are in memory, which the filter cannot read; libraries fall back to `clone`.
    ...call(CLONE3[at], [{ code: RETURN, value: refuse(ENOSYS) }]),
    ...call(CLONE[at], [
      { code: LOAD, value: argument(0) },
      ...when(JUMP_ANY_BIT, CLONE_NEW, [{ code: RETURN, value: refuse(EPERM) }]),
      { code: RETURN, value: ALLOW },
    ]),
    // Clearing the parent death signal is refused.
    ...call(PRCTL[at], [
      { code: LOAD, value: argument(0) },
      ...when(JUMP_EQUAL, PR_SET_PDEATHSIG, [
        { code: LOAD, value: argument(1) },
        ...unless(JUMP_EQUAL, SIGKILL, [{ code: RETURN, value: refuse(EPERM) }]),
      ]),
      { code: RETURN, value: ALLOW },
    ]),
    // Anonymous shared memory is not counted for a process after it has marked it as not needed.
    ...call(MMAP[at], [
      { code: LOAD, value: argument(3) },
      ...when(JUMP_ANY_BIT, MAP_ANONYMOUS, [
        ...when(JUMP_ANY_BIT, MAP_SHARED, [{ code: RETURN, value: refuse(EPERM) }]),
      ]),
      { code: RETURN, value: ALLOW },
    ]),
    ...call(SOCKET[at], [
      { code: LOAD, value: argument(0) },
      ...SOCKET_FAMILIES.flatMap((family) => when(JUMP_EQUAL, family, [{ code: RETURN, value: ALLOW }])),
      { code: RETURN, value: refuse(EAFNOSUPPORT) },
    ]),
    ...refused.flatMap((number) => call(number, [{ code: RETURN, value: refuse(EPERM) }])),
    { code: RETURN, value: ALLOW },
  ]);
}

/** The names of the calls that are always refused. */
export const REFUSED_CALLS: readonly string[] = Object.keys(REFUSED);

/** The number of a call on this architecture; undefined when there is none. */
export function callNumber(name: string, architecture: string = process.arch): number | undefined {
  return REFUSED[name]?.[architecture === 'arm64' ? 1 : 0];
}

/** The instructions for one system call, which must end with a return. */
function call(number: number | undefined, body: readonly Instruction[]): Instruction[] {
  return number === undefined ? [] : when(JUMP_EQUAL, number, body);
}

function when(code: number, value: number, body: readonly Instruction[]): Instruction[] {
  return [{ code, value, skip: [0, body.length] }, ...body];
}

function unless(code: number, value: number, body: readonly Instruction[]): Instruction[] {
  return [{ code, value, skip: [body.length, 0] }, ...body];
}

/** `struct sock_filter`, little-endian on both architectures. */
function assemble(instructions: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(instructions.length * 8);
  instructions.forEach(({ code, value, skip = [0, 0] }, at) => {
    bytes.writeUInt16LE(code, at * 8);
    bytes.writeUInt8(skip[0], at * 8 + 2);
    bytes.writeUInt8(skip[1], at * 8 + 3);
    bytes.writeUInt32LE(value, at * 8 + 4);
  });
  return bytes;
}
