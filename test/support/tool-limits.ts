/** Limits of a tool that are generous in time, and small in what tests can reach quickly. */
export const TOOL_LIMITS = {
  timeoutMs: 100_000,
  memoryMb: 1024,
  fileMb: 4,
  openFiles: 64,
  processes: 32,
  cpuSeconds: 20,
  diskMb: 64,
  totalMemoryMb: 8192,
};
