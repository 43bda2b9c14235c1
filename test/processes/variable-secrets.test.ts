/** Secrets of handlers are visible to these handlers only: over HTTP, with real processes. */
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectData, expectFailure } from '../support/expect.js';
import { call } from '../support/http.js';
import { type Stack, startStack } from '../support/processes.js';
import { startRedis, type TestRedis } from '../support/redis.js';
import {
  everythingIn,
  everythingInRedis,
  expectNone,
  expectNoneInFiles,
  expectNoneInProcesses,
  secret,
} from '../support/secrets.js';

const HOST = 'hidden.example';
const NAME = 'HIDDEN';
/** Says how long its secret is; with `fails` it answers 500, with `dies` it ends. */
const KNOWS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    let length = std::env::var("HIDDEN").map(|value| value.len()).unwrap_or_default();
    println!("asked for {length}");
    if req.query_param("dies").is_some() { std::process::exit(9) }
    if req.query_param("fails").is_some() { panic!("on purpose") }
    Response::text(200, length.to_string())
}
handler_loop!(handle);
`;

for (const kind of ['PostgreSQL', 'Redis'] as const) {
  describe(`secrets of handlers, with queues on ${kind},`, function () {
    this.timeout(120_000);
    let redis: TestRedis | undefined;
    let stack: Stack;
    before(async () => {
      if (kind === 'Redis') redis = await startRedis();
      stack = await startStack({ env: { LOG_LEVEL: 'debug', ...(redis && { REDIS_URL: redis.url }) } });
    });
    after(async () => {
      await stack?.close();
      await redis?.remove();
    });

    it(`keeps secrets of handlers out of answers, logs, tables, files and arguments, with queues on ${kind}`, async () => {
      const answers: unknown[] = [];
      const { api } = stack;
      const get = async (path: string) => answers.push((await api.get(path)).body);
      const create = async (path: string, body: object) =>
        expectData<{ id: string }>(await api.post(path, body), 201).id;
      const domainId = await create('/api/domains', { name: 'D', host: HOST });
      const collection_id = await create('/api/collections', { name: 'C', domain_id: domainId });
      const id = await stack.deploy({ path: '/hidden', code: KNOWS, domain: HOST, collection_id });
      const at = `/api/endpoints/${id}`;
      const owners = [`/api/domains/${domainId}`, `/api/collections/${collection_id}`, at];
      for (const owner of owners) {
        const value = secret(owner);
        answers.push((await api.put(`${owner}/secrets/${NAME}`, { value })).body);
        await eventually(async () => {
          const { text } = await call(`${stack.gatewayUrl}/hidden`, { headers: { host: HOST } });
          expect(text).to.equal(String(Buffer.byteLength(value)));
        });
      }
      // Refused ones are not repeated in the refusal.
      for (const [name, value] of [
        ['PATH', secret('reserved')],
        [NAME, secret('large').repeat(5_000)],
        [NAME, [secret('as a list')]],
      ] as const) {
        const refused = await api.put(`${at}/secrets/${name}`, { value });
        expectFailure(refused, 'invalid_input');
        answers.push(refused.body);
      }
      answers.push((await api.put(`${at}/variables`, { [NAME]: secret('plain') })).body);

      // All that is stored, queued or printed while it is in force.
      const deployed = await api.post(`${at}/deploy`, { code: `${KNOWS}// another`, message: 'changed' });
      expectData(deployed);
      answers.push(deployed.body);
      const failed = await api.post(`${at}/deploy`, { code: `${KNOWS} const X: u8 = env!("${NAME}");` });
      expectFailure(failed, 'compile_failed', /HIDDEN/);
      answers.push(failed.body);
      const noStart = await api.post(`${at}/deploy`, {
        code: `${KNOWS.replace('handler_loop', 'mod unused { use super::*; handler_loop').replace(/;\s*$/, '; }')}
          fn main() { eprintln!("no configuration"); std::process::exit(7) }`,
      });
      expectFailure(noStart, 'handler_start_failed', /no configuration/);
      answers.push(noStart.body, (await api.post(`${at}/rollback`)).body);
      for (const path of ['/hidden', '/hidden?fails=1', '/hidden?dies=1'])
        answers.push((await api.post(`${at}/invoke`, { path })).body);
      for (const [path, state] of [
        ['/hidden', 'succeeded'],
        ['/hidden?fails=1', 'failed'],
        ['/hidden?dies=1', 'failed'],
      ] as const) {
        const job = expectData<{ job_id: string }>(
          await api.post(`${at}/enqueue`, { path, attempts: 2, backoff_ms: 10 }),
          201,
        );
        const show = () => api.get(`/api/jobs/${job.job_id}`);
        await eventually(async () => expect(expectData(await show())).to.include({ state }), 30_000);
        answers.push((await show()).body);
      }

      for (const owner of owners)
        for (const resource of ['', '/variables', '/secrets']) await get(`${owner}${resource}`);
      for (const resource of ['environment', 'versions', 'versions/1', 'deployments', 'jobs', 'logs'])
        await get(`${at}/${resource}`);
      await get(`${at}/versions/1/diff?to=2`);
      for (const path of ['/api/builds', '/api/logs', '/api/stats', '/metrics']) await get(path);
      expectNone('an answer', JSON.stringify(answers));
      for (const status of ['completed', 'failed', 'latest']) {
        const { body } = await api.get(`/queues/api/queues?status=${status}`);
        expectNone('the queue dashboard', JSON.stringify(body));
      }
      expectNone('the database', await everythingIn(stack.databaseUrl));
      if (redis) {
        const queued = await everythingInRedis(redis.url);
        expect(queued).to.include('"endpoint\\":\\"/hidden\\"');
        expectNone('the queues', queued);
      }
      await expectNoneInProcesses(stack);
      expect(await expectNoneInFiles(join(stack.dataDir, 'artifacts'))).to.be.at.least(2);
    });
  });
}
