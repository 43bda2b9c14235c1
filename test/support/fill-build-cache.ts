/**
 * Compiles one handler of each kind, so that the libraries they are compiled against are in the cache that all tests
 * share. The first time this takes minutes, for which no test should have to wait. `scripts/test.mjs` runs it.
 */
import { eventually } from './eventually.js';
import { stopServer } from './postgres.js';
import { OPTIONAL_CRATE, TRACING, TWO_CRATES } from './prepared-sets.js';
import { must, type Stack, startStack } from './processes.js';

const LIMIT_MS = 30 * 60_000;
const SYNC = 'fn handle(_: Request) -> Response { Response::text(200, "") }\nhandler_loop!(handle);';
const ASYNC =
  'async fn handle(_: Request) -> Response { Response::text(200, "") }\nhandler_loop_async!(handle);';
const WITHOUT_CRATES = {
  sync: { source: SYNC, dependencies: {} },
  async: { source: ASYNC, dependencies: {} },
};
const WITH_CRATES = {
  'two-crates': { source: SYNC, dependencies: TWO_CRATES },
  tracing: { source: SYNC, dependencies: TRACING },
  'optional-crate': { source: SYNC, dependencies: OPTIONAL_CRATE },
};
/** By setting of the sandbox: builds without namespaces have libraries of their own, at both levels the same. */
const HANDLERS = { auto: { ...WITHOUT_CRATES, ...WITH_CRATES }, landlock: { sync: WITHOUT_CRATES.sync } };

try {
  const stack = await startStack({ processes: ['web'] });
  try {
    for (const [mode, handlers] of Object.entries(HANDLERS)) {
      await stack.start('worker', { SANDBOX: mode });
      for (const [kind, handler] of Object.entries(handlers))
        await compile(stack, `${kind}-${mode}`, handler);
      await stack.processes.get('worker')?.end();
    }
  } finally {
    await stack.close();
  }
} finally {
  await stopServer();
}

async function compile(
  { api }: Stack,
  name: string,
  { source, dependencies }: { readonly source: string; readonly dependencies: object },
): Promise<void> {
  // Another source for each of them: one that was compiled at another level would be reused.
  const code = `use rust_edge_gateway_sdk::prelude::*;\n${source}\n// ${name}\n`;
  const endpoint = { name, path: `/${name}`, method: 'GET', domain: '*', code, dependencies };
  const { id } = (await must(api.post('/api/endpoints', endpoint))) as { id: string };
  const headers = { prefer: 'respond-async' };
  await must(api.post(`/api/endpoints/${id}/compile`, undefined, { headers }));
  const status = await eventually(async () => {
    const view = (await must(api.get(`/api/endpoints/${id}`))) as { status: string };
    if (!['compiled', 'error'].includes(view.status)) throw new Error(`${name} is still ${view.status}`);
    return view.status;
  }, LIMIT_MS);
  if (status !== 'compiled') throw new Error(`The handler ${name} does not compile`);
}
