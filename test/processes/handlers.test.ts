/** Handler processes: started, replaced under load, crashing, over their deadline, printing, ended. */
import { access, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { eventually } from '../support/eventually.js';
import { expectFailure } from '../support/expect.js';
import { ANYTHING, DIES_AT_START, numbered } from '../support/handler-sources.js';
import { type Answer, call } from '../support/http.js';
import { descendantsOf, isRunning, processesWith } from '../support/process-state.js';
import { must, type Stack, startStack } from '../support/processes.js';

interface EndpointView {
  readonly id: string;
  readonly status: string;
  readonly last_error: string | null;
  readonly running: boolean;
  readonly pid: number | null;
}

/** Ready, and dead at its first request, with last words that PostgreSQL would not take as they are. */
const DIES_AT_REQUESTS = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response {
    eprintln!("cannot go on\\0");
    std::process::exit(7)
}
handler_loop!(handle);
`;

const NOT_A_HANDLER = `// Without read_request, it would not even compile.\nfn main() { println!("hello, world"); }`;

/** Says that it has begun to start by making one file, and waits for another before it is ready. */
const startsWhenTold = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::ok("ready") }
mod real { use super::*; handler_loop!(handle); pub fn run() { main() } }
fn main() {
    std::fs::write("/tmp/begun", "").expect("a file");
    while !std::path::Path::new("/tmp/go-on").exists() {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    real::run()
}
`;

describe('handler processes', () => {
  let stack: Stack;
  before(async () => {
    stack = await startStack();
  });
  after(async () => {
    await stack.close();
  });

  const at = (path: string) => `${stack.gatewayUrl}${path}`;
  const view = async (id: string) => (await must(stack.api.get(`/api/endpoints/${id}`))) as EndpointView;
  const create = async (path: string, code: string) =>
    (
      (await must(
        stack.api.post('/api/endpoints', { name: path, path, method: 'GET', domain: '*', code }),
      )) as EndpointView
    ).id;
  const compile = (id: string) => must(stack.api.post(`/api/endpoints/${id}/compile`));
  const start = async (id: string) =>
    ((await must(stack.api.post(`/api/endpoints/${id}/start`))) as { pid: number }).pid;
  const instanceOf = (answer: Answer) => (JSON.parse(answer.text) as { instance: number }).instance;
  const restarts = async (id: string, reason: string) => {
    const { body } = await stack.api.get('/metrics');
    const series = `edge_gateway_handler_restarts_total{endpoint="${id}",reason="${reason}"} `;
    return Number(String(body).split(series)[1]?.split('\n')[0] ?? 0);
  };

  describe('start and stop', () => {
    it('answers a start of a handler that already runs with the same process', async () => {
      const id = await stack.deploy({ path: '/same', code: ANYTHING });
      const { pid } = await view(id);
      const instance = instanceOf(await call(at('/same')));
      expect(await start(id)).to.equal(pid);
      expect(instanceOf(await call(at('/same')))).to.equal(instance);
      expect(await restarts(id, 'crash')).to.equal(0);
    });

    it('logs the start and the output of a handler with the request id of the API call that started it', async () => {
      const id = await create('/traced', ANYTHING);
      await compile(id);
      await must(
        stack.api.post(`/api/endpoints/${id}/start`, undefined, { headers: { 'x-request-id': 'my-start' } }),
      );
      await call(at('/traced?do=print'));
      const lines = stack.processes.get('gateway')?.logged.lines ?? [];
      for (const message of ['handler ready', 'said on stdout']) {
        await eventually(() => {
          const line = lines.find(({ msg, endpoint_id }) => msg === message && endpoint_id === id);
          expect(line).to.include({ request_id: 'my-start' });
        });
      }
    });

    it('finishes requests in flight before it stops a handler', async () => {
      const id = await stack.deploy({ path: '/finish', code: ANYTHING });
      const { pid } = await view(id);
      const slow = call(at('/finish?do=sleep&ms=2000'));
      await eventually(async () => expect(await inFlight(stack)).to.equal(1));
      expect(await must(stack.api.post(`/api/endpoints/${id}/stop`))).to.deep.equal({ status: 'stopped' });
      expect((await slow).status).to.equal(200);
      expect(isRunning(pid)).to.equal(false);
      expect((await call(at('/finish'))).status).to.equal(503);
      expect(await view(id)).to.include({ status: 'stopped', running: false, pid: null });
    });

    it('rejects a stop of an endpoint that does not run, and a start of one that is not compiled', async () => {
      const id = await create('/refused', ANYTHING);
      expectFailure(await stack.api.post(`/api/endpoints/${id}/start`), 'endpoint_not_compiled');
      expectFailure(await stack.api.post(`/api/endpoints/${id}/stop`), 'endpoint_not_running');
      await compile(id);
      expectFailure(await stack.api.post(`/api/endpoints/${id}/stop`), 'endpoint_not_running');
      await start(id);
      await must(stack.api.post(`/api/endpoints/${id}/stop`));
      expectFailure(await stack.api.post(`/api/endpoints/${id}/stop`), 'endpoint_not_running');
      await start(id);
      expect((await call(at('/refused'))).status).to.equal(200);
    });

    it('serves the old artifact of an endpoint after a new one is compiled, until that is started', async () => {
      const id = await stack.deploy({ path: '/until', code: numbered(1) });
      const { pid } = await view(id);
      await must(stack.api.put(`/api/endpoints/${id}`, { code: numbered(2) }));
      await compile(id);
      expect(await view(id)).to.include({ status: 'compiled', running: true, pid });
      expect((await call(at('/until'))).text).to.equal('1 ');
      expect(await start(id)).not.to.equal(pid);
      expect((await call(at('/until'))).text).to.equal('2 ');
      expect(await view(id)).to.include({ status: 'running', running: true });
      await eventually(() => expect(isRunning(pid)).to.equal(false));
    });
  });

  it('ends a start when a stop or the deletion of the endpoint overtakes it', async () => {
    for (const [name, overtake, outcome] of [
      ['stop', (id: string) => stack.api.post(`/api/endpoints/${id}/stop`), 'start_overtaken'],
      ['delete', (id: string) => stack.api.delete(`/api/endpoints/${id}`), 'not_found'],
    ] as const) {
      const id = await create(`/overtaken/${name}`, startsWhenTold);
      await compile(id);
      const starting = stack.api.post(`/api/endpoints/${id}/start`);
      await eventually(() => tmpWith('begun', id));
      const overtaking = overtake(id);
      // Nobody tells the handler to go on.
      expectFailure(await starting, outcome);
      expect((await overtaking).status).to.equal(200);
      await eventually(async () =>
        expect((await call(at(`/overtaken/${name}`))).status).to.be.oneOf([503, 404]),
      );
    }
  });

  describe('crashes', () => {
    it('answers 502 to the request in a handler that crashes, holds others, and starts it again', async () => {
      const id = await stack.deploy({ path: '/crash', code: ANYTHING });
      for (const how of ['exit', 'abort', 'exit']) {
        const instance = instanceOf(await call(at('/crash')));
        const { pid } = await view(id);
        expect((await call(at(`/crash?do=${how}`))).status).to.equal(502);
        // Until then, other threads of the front have connections to it, and requests that they send are in it.
        await eventually(() => expect(isRunning(pid)).to.equal(false));
        const answers = await Promise.all(Array.from({ length: 10 }, () => call(at('/crash'))));
        for (const answer of answers) {
          expect(answer.status, answer.text).to.equal(200);
          expect(instanceOf(answer)).not.to.equal(instance);
        }
        await eventually(async () => expect(await view(id)).to.include({ running: true, status: 'running' }));
      }
      expect(await restarts(id, 'crash')).to.equal(3);
    });

    it('kills the processes that a handler has started when it crashes or is stopped', async () => {
      const id = await stack.deploy({ path: '/parent', code: ANYTHING });
      const child = async () => {
        expect((await call(at('/parent?do=child'))).status).to.equal(204);
        // It is not the other program yet when it has just been started; nor is a handler known that has.
        return eventually(async () => {
          const { pid } = await view(id);
          const sleeper = descendantsOf(pid ?? 0).find(({ command }) => /sleep/.test(command));
          return sleeper?.pid ?? expect.fail('no child');
        });
      };
      const first = await child();
      expect(isRunning(first)).to.equal(true);
      await call(at('/parent?do=exit'));
      await eventually(() => expect(isRunning(first), 'after a crash').to.equal(false));
      const second = await eventually(child);
      await must(stack.api.post(`/api/endpoints/${id}/stop`));
      await eventually(() => expect(isRunning(second), 'after a stop').to.equal(false));
    });

    it('sets an endpoint whose handler keeps crashing to error, and serves its next working build', async () => {
      const id = await stack.deploy({ path: '/loop', code: DIES_AT_REQUESTS });
      await eventually(async () => {
        await call(at('/loop'));
        expect(await view(id)).to.include({ status: 'error' });
      });
      expect((await view(id)).last_error).to.match(/exit code 7[\s\S]*cannot go on\ufffd/);
      expect(await restarts(id, 'crash')).to.be.at.least(5);

      await must(stack.api.put(`/api/endpoints/${id}`, { code: numbered(1) }));
      await compile(id);
      await start(id);
      expect(await view(id)).to.include({ status: 'running', last_error: null, running: true });
      expect((await call(at('/loop'))).text).to.equal('1 ');
    });

    it('reports why a handler did not start, with its last output', async () => {
      for (const [path, code, message] of [
        ['/dies', DIES_AT_START, /exit code 9[\s\S]*the config is missing/],
        ['/no-handler', NOT_A_HANDLER, /exit code 0[\s\S]*hello, world/],
      ] as const) {
        const id = await create(path, code);
        await compile(id);
        expectFailure(await stack.api.post(`/api/endpoints/${id}/start`), 'handler_start_failed', message);
        const failed = await view(id);
        expect(failed).to.include({ status: 'error', running: false });
        expect(failed.last_error).to.match(message);
        expect((await call(at(path))).status).to.equal(503);

        await must(stack.api.put(`/api/endpoints/${id}`, { code: numbered(1) }));
        await compile(id);
        await start(id);
        expect((await call(at(path))).text).to.equal('1 ');
      }
    });

    it('keeps the running process of an endpoint when many starts of a broken build fail at once', async () => {
      const id = await stack.deploy({ path: '/keeps-on', code: numbered(1) });
      const { pid } = await view(id);
      for (let round = 0; round < 3; round++) {
        await must(stack.api.put(`/api/endpoints/${id}`, { code: DIES_AT_START }));
        await compile(id);
        const answers = await Promise.all(
          Array.from({ length: 8 }, () => stack.api.post(`/api/endpoints/${id}/start`)),
        );
        for (const { status } of answers) expect(status).to.be.oneOf([409, 422]);
        await eventually(async () =>
          expect(await view(id)).to.include({ status: 'error', running: true, pid }),
        );
        expect((await call(at('/keeps-on'))).text).to.equal('1 ');
      }
      await must(stack.api.put(`/api/endpoints/${id}`, { code: numbered(2) }));
      await compile(id);
      await start(id);
      expect((await call(at('/keeps-on'))).text).to.equal('2 ');
    });

    it('keeps the running process of an endpoint when its successor does not start', async () => {
      const id = await stack.deploy({ path: '/keeps', code: numbered(1) });
      const { pid } = await view(id);
      await must(stack.api.put(`/api/endpoints/${id}`, { code: NOT_A_HANDLER }));
      await compile(id);
      expectFailure(await stack.api.post(`/api/endpoints/${id}/start`), 'handler_start_failed');
      expect((await call(at('/keeps'))).text).to.equal('1 ');
      await eventually(async () =>
        expect(await view(id)).to.include({ status: 'error', running: true, pid }),
      );
    });
  });

  it('replaces a handler that exceeds its deadline, and lets its other requests finish', async () => {
    const id = await stack.deploy({ path: '/late', code: ANYTHING, limits: { timeout_ms: 30_000 } });
    const { pid } = await view(id);
    const instance = instanceOf(await call(at('/late')));
    const waiting = call(at('/late?do=wait&file=/tmp/go-on'));
    await eventually(async () => expect(await inFlight(stack)).to.equal(1));
    await must(stack.api.put(`/api/endpoints/${id}`, { limits: { timeout_ms: 1_000 } }));
    const late = await eventually(async () => {
      const answer = await call(at('/late?do=sleep&ms=2000'));
      // The gateway does not have the new limit yet.
      expect(answer.status).not.to.equal(200);
      return answer;
    });
    await writeFile(`/proc/${pid}/root/tmp/go-on`, '');
    expect(late.status).to.equal(504);
    expect(JSON.parse(late.text)).to.have.all.keys('error');
    const finished = await waiting;
    expect(finished.status, finished.text).to.equal(200);
    expect(instanceOf(finished)).to.equal(instance);
    await eventually(async () => expect(instanceOf(await call(at('/late')))).not.to.equal(instance));
    await eventually(() => expect(isRunning(pid)).to.equal(false));
    expect(await restarts(id, 'deadline')).to.equal(1);
    await eventually(async () => expect(isRunning((await view(id)).pid)).to.equal(true));
  });
});

async function inFlight(stack: Stack): Promise<number> {
  const { body } = await stack.api.get('/metrics');
  return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
}

/** The /tmp, as seen from here, of a process of this endpoint that has made a file there. */
async function tmpWith(file: string, endpointId: string): Promise<string> {
  for (const pid of processesWith(`EDGE_ENDPOINT_ID=${endpointId}`)) {
    const tmp = `/proc/${pid}/root/tmp`;
    const exists = await access(join(tmp, file)).then(
      () => true,
      () => false,
    );
    if (exists) return tmp;
  }
  throw new Error(`no process of ${endpointId} has made ${file}`);
}
