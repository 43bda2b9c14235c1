/** How often something can be done at once. */

/** Runs a second of a function, with a number of concurrent runs on each of these. */
export async function concurrentRate<T>(
  seconds: number,
  underWay: number,
  on: readonly T[],
  work: (each: T) => Promise<unknown>,
): Promise<number> {
  const started = performance.now();
  let times = 0;
  const repeat = async (each: T) => {
    while (performance.now() - started < seconds * 1000) {
      await work(each);
      times++;
    }
  };
  await Promise.all(on.flatMap((each) => Array.from({ length: underWay }, () => repeat(each))));
  return times / ((performance.now() - started) / 1000);
}
