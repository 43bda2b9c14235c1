/** How fast is an API imported, and how much does the import delay other requests? */
import type { Stack } from '../test/support/processes.js';
import { bundle } from './import/bundle.js';
import { largeDocument } from './import/large-document.js';
import { withStacks } from './support/gateway.js';
import { type Benchmark, runAlone } from './support/main.js';
import type { Row } from './support/report.js';

/** Separate processes for each: the memory peak is that of one kind of import. */
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
