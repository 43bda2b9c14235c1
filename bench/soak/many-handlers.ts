/** How much memory do 500 running handlers take, and how fast are requests that are spread over all of them? */
import { must } from '../../test/support/processes.js';
import { withStacks } from '../support/gateway.js';
import { type LoadResult, load } from '../support/load.js';
import { median, round } from '../support/report.js';
import { PROCESS_KINDS, type ProcessKind, processFigures } from './figures.js';
import { soakHandler } from './handlers.js';

const ROUNDS = 5;
const SECONDS = 3;
const CONNECTIONS = 64;
const AT_A_TIME = 8;

/** Measures, and describes it as Markdown. @param count handlers */
export function manyHandlers(count: number): Promise<string> {
  return withStacks([{}], async (stack) => {
    if (!stack) throw new Error('there is no stack');
    const started = performance.now();
    let next = 0;
    const deploy = async () => {
      while (next < count) await stack.deploy({ path: `/many/${next++}/{n}`, code: soakHandler('many') });
    };
    // The first one compiles; the others reuse its artifact.
    await stack.deploy({ path: `/many/${next++}/{n}`, code: soakHandler('many') });
    await Promise.all(Array.from({ length: AT_A_TIME }, deploy));
    const seconds = (performance.now() - started) / 1000;
    const script = `request = function() return wrk.format("GET", "/many/" .. math.random(0, ${count - 1}) .. "/" .. math.random(0, 999)) end\n`;
    const target = { url: stack.gatewayUrl, seconds: SECONDS, connections: CONNECTIONS, script };
    await load(target);
    const rounds: LoadResult[] = [];
    for (let at = 0; at < ROUNDS; at++) rounds.push(await load(target));
    const byKind = processFigures({ stack });
    const { endpoints_running } = (await must(stack.api.get('/api/stats'))) as { endpoints_running: number };
    const of = (what: 'requestsPerSecond' | 'p50' | 'p99') => round(median(rounds.map((one) => one[what])));
    const { processes, pss } = byKind.handler;
    const memory = PROCESS_KINDS.map((kind: ProcessKind) => `${kind} ${mib(byKind[kind].pss)}`).join(', ');
    return [
      `${endpoints_running} running handlers, created, compiled and started through the API in ${round(seconds)} s; ${CONNECTIONS} connections, each request to any of them.`,
      [
        '| | |',
        '|---|---|',
        `| PSS of a running handler, with all its processes (${(processes / endpoints_running).toFixed(1)}) | ${mib(pss / endpoints_running)} |`,
        `| PSS of all | ${mib(pss)} |`,
        `| requests/s | ${of('requestsPerSecond')} |`,
        `| p50 | ${of('p50')} ms |`,
        `| p99 | ${of('p99')} ms |`,
      ].join('\n'),
      `PSS by process: ${memory}.`,
    ].join('\n\n');
  });
}

function mib(bytes: number): string {
  return `${(bytes / 1024 ** 2).toFixed(1)} MiB`;
}
