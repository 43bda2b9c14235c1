/** Many endpoints on one gateway, with routes as diverse as those of real APIs. */
import { must, type Stack } from '../../test/support/processes.js';

const AT_ONCE = 50;

/** Defines endpoints that do not run, numbered from 0. */
export async function defineEndpoints({ api }: Stack, count: number): Promise<void> {
  for (let at = 0; at < count; at += AT_ONCE) {
    await Promise.all(
      Array.from({ length: Math.min(AT_ONCE, count - at) }, (_none, offset) => {
        const path = `/api/v${(at + offset) % 7}/resource${at + offset}/{id}`;
        return must(api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*' }));
      }),
    );
  }
}
