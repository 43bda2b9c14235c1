/** Has a real gateway check values by JSON Schemas: many in few endpoints, none of which has a handler. */
import { Agent } from 'node:http';
import pLimit from 'p-limit';
import { eventually } from './eventually.js';
import { expectData } from './expect.js';
import { call } from './http.js';
import { type Stack, startStack } from './processes.js';

export interface Checked {
  readonly schema: unknown;
  /** What `#/components/schemas/` leads to; names are those of no other one. */
  readonly components?: Readonly<Record<string, unknown>>;
  /** JSON texts. */
  readonly values: readonly string[];
}

export interface SchemaChecks {
  readonly stack: Stack;
  /** Whether each value fits its schema. */
  verdicts(checked: readonly Checked[]): Promise<boolean[][]>;
  close(): Promise<void>;
}

/** Schemas of one endpoint. Those with URLs could know each other. */
const BATCH = 50;
const HOST = 'schemas.example';

export async function startSchemaChecks(): Promise<SchemaChecks> {
  const stack = await startStack({ processes: ['web', 'gateway'], env: { LOG_LEVEL: 'error' } });
  const agent = new Agent({ keepAlive: true, maxSockets: 8 });
  const limit = pLimit(8);
  let endpoints = 0;

  const checkBatch = async (batch: readonly Checked[]): Promise<boolean[][]> => {
    const path = `/batch-${endpoints++}`;
    const content = Object.fromEntries(
      batch.map(({ schema }, at) => [`application/s${at}+json`, { schema }]),
    );
    const schemas = Object.assign({}, ...batch.map(({ components }) => components));
    const validate = {
      mode: 'enforce',
      body: { required: true, content },
      ...(Object.keys(schemas).length > 0 && { components: { schemas } }),
    };
    const fields = { name: path, path, method: 'POST', domain: HOST };
    const { id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', fields), 201);
    expectData(await stack.api.put(`/api/endpoints/${id}`, { policies: { validate } }));
    // Nobody waits for endpoints without a handler.
    await eventually(async () => {
      const other = { host: HOST, 'content-type': 'application/other' };
      const answer = await call(`${stack.gatewayUrl}${path}`, {
        method: 'POST',
        headers: other,
        agent,
        body: '1',
      });
      if (answer.status !== 415) throw new Error(`${answer.status} ${answer.text}`);
    });
    const check = async (value: string, at: number): Promise<boolean> => {
      const headers = { host: HOST, 'content-type': `application/s${at}+json` };
      const answer = await call(`${stack.gatewayUrl}${path}`, {
        method: 'POST',
        headers,
        agent,
        body: value,
      });
      // There is no handler for what fits.
      if (answer.status === 503 && answer.text.includes('not running')) return true;
      if (answer.status === 400 && answer.text.includes('"problems"')) return false;
      throw new Error(`${JSON.stringify(batch[at]?.schema)} of ${value}: ${answer.status} ${answer.text}`);
    };
    return Promise.all(
      batch.map(({ values }, at) => Promise.all(values.map((value) => limit(() => check(value, at))))),
    );
  };

  return {
    stack,
    verdicts: async (checked) => {
      const all: boolean[][] = [];
      for (const batch of batches(checked)) all.push(...(await checkBatch(batch)));
      return all;
    },
    close: async () => {
      agent.destroy();
      await stack.close();
    },
  };
}

function* batches(checked: readonly Checked[]): Generator<readonly Checked[]> {
  let batch: Checked[] = [];
  for (const one of checked) {
    const isAlone = JSON.stringify(one.schema).includes('"$id"');
    if (batch.length > 0 && (isAlone || batch.length >= BATCH)) {
      yield batch;
      batch = [];
    }
    batch.push(one);
    if (!isAlone) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}
