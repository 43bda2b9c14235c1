/** Which handlers to end before the kernel chooses, when the memory of the machine or of a cgroup becomes scarce. */

/** The memory of a machine or of a cgroup, bytes. */
export interface Memory {
  readonly total: number;
  /** What programs can still get. */
  readonly available: number;
}

/** A handler without requests. */
export interface IdleHandler {
  readonly endpointId: string;
  readonly idleMs: number;
  /** What its processes have in memory. */
  readonly bytes: number;
}

/** Handlers are ended when less than this share of the memory is available. */
const SCARCE = 0.08;
/** They are ended until this share should be available. */
const ENOUGH = 0.12;
/** Those that had a request since are about to get the next one. */
const LEAST_IDLE_MS = 1_000;

/** Whether handlers should be ended. */
export function isScarce({ total, available }: Memory): boolean {
  return available < total * SCARCE;
}

/** The handlers to end: as many as have what is missing, the longest idle first. */
export function handlersToEnd(memory: readonly Memory[], idle: readonly IdleHandler[]): IdleHandler[] {
  let missing = Math.max(
    0,
    ...memory.filter(isScarce).map(({ total, available }) => total * ENOUGH - available),
  );
  const longestFirst = idle
    .filter(({ idleMs }) => idleMs >= LEAST_IDLE_MS)
    .sort((left, right) => right.idleMs - left.idleMs);
  const chosen: IdleHandler[] = [];
  for (const handler of longestFirst) {
    if (missing <= 0) break;
    chosen.push(handler);
    missing -= handler.bytes;
  }
  return chosen;
}
