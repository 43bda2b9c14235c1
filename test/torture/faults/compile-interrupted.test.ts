/** Workers and web processes that are killed in the middle of a compile, wherever the queue lives. */
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { slowToCompile } from '../../support/handler-sources.js';
import { handlerCompilersOf, isRunning } from '../../support/process-state.js';
import { must, type ProcessName, type Stack, scratchOf, startStack } from '../../support/processes.js';
import { startRedis, type TestRedis } from '../../support/redis.js';

interface BuildView {
  readonly state: string;
  readonly attempt: number;
  readonly artifact: string | null;
  readonly request_id: string;
}

/** Takes a compiler two seconds or so. */
const STEPS = 2_000_000;

for (const queue of ['PostgreSQL', 'Redis'] as const) {
  describe(`a compile with the queue on ${queue}`, () => {
    let stack: Stack;
    let redis: TestRedis | undefined;
    let created = 0;
    before(async () => {
      if (queue === 'Redis') redis = await startRedis();
      stack = await startStack({
        processes: ['web', 'worker'],
        env: { ...(redis && { REDIS_URL: redis.url }) },
      });
    });
    after(async () => {
      await stack?.close();
      await redis?.remove();
    });

    const create = async () => {
      const number = ++created;
      const path = `/interrupted/${number}`;
      const code = slowToCompile(STEPS, queue === 'Redis' ? 500 + number : 400 + number);
      const endpoint = { name: path, path, method: 'GET', domain: '*', code };
      return ((await must(stack.api.post('/api/endpoints', endpoint))) as { id: string }).id;
    };
    const build = async (id: string) => (await must(stack.api.get(`/api/builds/${id}`))) as BuildView;
    const running = (name: ProcessName) => {
      const process = stack.processes.get(name);
      if (!process) throw new Error(`no ${name}`);
      return process;
    };
    /** Those at work. */
    const compilers = () =>
      eventually(() => {
        const found = handlerCompilersOf(running('worker').pid);
        expect(found).not.to.deep.equal([]);
        return found;
      });
    const artifacts = async () => {
      const files = await readdir(join(stack.dataDir, 'artifacts'), {
        recursive: true,
        withFileTypes: true,
      }).catch(() => []);
      return files.filter((file) => file.isFile()).map(({ name }) => name);
    };
    const buildOf = async (endpointId: string) => {
      const { build_id } = (await must(stack.api.get(`/api/endpoints/${endpointId}`))) as {
        build_id: string;
      };
      return build_id;
    };

    it(`a compile is retried when its worker is killed, and answers the waiting call (queue on ${queue})`, async () => {
      const before = await artifacts();
      const id = await create();
      const answer = must(stack.api.post(`/api/endpoints/${id}/compile`));
      const processes = await compilers();
      const scratch = await scratchOf(running('worker').pid);
      await running('worker').end('SIGKILL');
      await stack.start('worker');
      await eventually(() => expect(processes.filter(isRunning), 'compilers left behind').to.deep.equal([]));
      const { build_id, status } = (await answer) as { build_id: string; status: string };
      expect(status).to.equal('compiled');
      const done = await build(build_id);
      expect(done).to.include({ state: 'succeeded', attempt: 2 });
      expect(await buildOf(id)).to.equal(build_id);
      const added = (await artifacts()).filter((name) => !before.includes(name));
      expect(added).to.deep.equal([done.artifact]);
      // The files of the try that was cut off are gone.
      expect(existsSync(scratch)).to.equal(false);
      const lines = running('worker').logged.lines;
      const finish = lines.find((line) => line['build_id'] === build_id && line.msg === 'build finished');
      expect(finish?.['request_id']).to.equal(done.request_id);
    });

    it(`a compile finishes when the web process that waits for it is killed (queue on ${queue})`, async () => {
      const id = await create();
      const cutOff = stack.api.post(`/api/endpoints/${id}/compile`).then(
        () => 'answered',
        () => 'cut off',
      );
      await compilers();
      const buildId = await buildOf(id);
      await running('web').end('SIGKILL');
      expect(await cutOff).to.equal('cut off');
      await stack.start('web');
      await eventually(async () =>
        expect(await build(buildId)).to.include({ state: 'succeeded', attempt: 1 }),
      );
      expect(await must(stack.api.get(`/api/endpoints/${id}`))).to.include({
        status: 'compiled',
        build_id: buildId,
      });
      // Whoever asks again is not kept waiting.
      expect(await must(stack.api.post(`/api/endpoints/${id}/compile`))).to.include({ cached: true });
    });
  });
}
