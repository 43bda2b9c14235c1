/** Is an API live as fast as it should be, and does nobody else notice? */
import type { Stack } from '../test/support/processes.js';
import { bundle } from './import/bundle.js';
import { largeDocument } from './import/large-document.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';
import type { Row } from './support/report.js';

/** Each with processes of its own: the peak of memory is that of one kind of import. */
export const imports: Benchmark = async () => [
  ...(await withOneStack(largeDocument)),
  ...(await withOneStack(bundle)),
];

function withOneStack(measure: (stack: Stack) => Promise<Row[]>): Promise<Row[]> {
  return withStacks([{}], async (stack) => {
    if (!stack) throw new Error('there is no stack');
    return measure(stack);
  });
}

await runAlone(import.meta.url, imports);
