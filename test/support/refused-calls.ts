/** System calls that no untrusted program may make, written down apart from the filter that refuses them. */

/** Numbers of system calls on x86_64 and arm64; undefined where there is none. */
type Numbers = readonly [x64: number, arm64: number | undefined];

/** By name. */
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
  shmat: [30, 196],
  shmctl: [31, 195],
  semget: [64, 190],
  semop: [65, 193],
  semtimedop: [220, 192],
  semctl: [66, 191],
  msgget: [68, 186],
  msgsnd: [69, 189],
  msgrcv: [70, 188],
  msgctl: [71, 187],
  mq_open: [240, 180],
  mq_unlink: [241, 181],
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
  inotify_init1: [294, 26],
  inotify_init: [253, undefined],
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

/** Their numbers on this machine. */
export const REFUSED_CALLS = Object.values(REFUSED).flatMap(
  ([x64, arm64]) => (process.arch === 'arm64' ? arm64 : x64) ?? [],
);

/** Refused when they give pages of shared memory back: MADV_REMOVE, FALLOC_FL_PUNCH_HOLE. */
export const [MADVISE, FALLOCATE] = process.arch === 'arm64' ? [233, 47] : [28, 285];
