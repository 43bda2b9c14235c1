/** The token of a handler process: it opens its services on its machine, while that process runs. */
import { readdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect } from 'chai';
import { handlerSocket, runDirectory, tokenFolder } from '../../src/bootstrap/run-directory.js';
import { HAS_UNTRUSTED_USERS } from '../../src/util/untrusted-users.js';
import type { TestBackend } from '../support/backend.js';
import { startRedisBackend } from '../support/backends/redis.js';
import { eventually } from '../support/eventually.js';
import { DIES_AT_START } from '../support/handler-sources.js';
import { freePort } from '../support/ports.js';
import { must, type Stack, startStack } from '../support/processes.js';
import { connectTo, type ServiceAnswer, type ServiceClient } from '../support/service-client.js';
import { tempDir } from '../support/temp.js';
import { activeService, bind, SECRET_KEY, tokenFor } from '../support/test-services.js';

/** Returns its token, or ends. */
const SOURCE = `
use rust_edge_gateway_sdk::prelude::*;

fn handle(req: Request) -> Response {
    match req.query_param("do").map(String::as_str) {
        Some("exit") => std::process::exit(3),
        Some("query") => match DbPool::new("db").query("SELECT 1 AS one", &[]) {
            Ok(result) => Response::text(200, result.rows[0]["one"].to_string()),
            Err(error) => Response::text(500, error.to_string()),
        },
        _ => Response::text(200, std::env::var("EDGE_SERVICES_TOKEN").expect("a token")),
    }
}

handler_loop!(handle);
`;
/** Of a service whose process is in Rust. */
const QUERY = [{ pool: 'db', op: 'query' }, '{"sql":"SELECT 1","params":[]}'] as const;
/** Of one whose process is in Node. */
const PING = [{ pool: 'cache', op: 'command' }, '["PING"]'] as const;

describe('the token of a handler process', function () {
  this.timeout(120_000);
  let stack: Stack;
  let redis: TestBackend<'redis'>;
  let endpointId: string;
  const clients: ServiceClient[] = [];
  before(async () => {
    redis = await startRedisBackend();
    stack = await startStack({ env: { SECRET_KEY } });
    endpointId = await stack.deploy({ path: '/token', code: SOURCE });
    const sqlite = { path: 'own.db', create_if_missing: true };
    await bind(stack.api, endpointId, await activeService(stack.api, 'sqlite', sqlite), 'db');
    await bind(stack.api, endpointId, await activeService(stack.api, 'redis', redis.config), 'cache');
  });
  after(async () => {
    await stack.close();
    await redis.remove();
  });
  afterEach(async () => {
    for (const client of clients.splice(0)) await client.close();
  });

  async function connected(socket = stack.servicesSocket): Promise<ServiceClient> {
    const client = await connectTo(socket);
    clients.push(client);
    return client;
  }

  /** The answer to a token. */
  async function tried(token: string, socket = stack.servicesSocket): Promise<ServiceAnswer> {
    const client = await connected(socket);
    const answer = await client.send({ token });
    // One that is refused is closed by the other side.
    await (answer.ok ? client.close() : client.closed);
    return answer;
  }

  /** The token of the process that runs. */
  async function running(): Promise<string> {
    const { status, body } = await stack.gateway.get('/token');
    expect(status, String(body)).to.equal(200);
    return String(body);
  }

  const tokens = async () => tokenFolder(await runDirectory(stack.dataDir));
  const nonceOf = (token: string) => token.split('.')[1] ?? '';

  /** Where the calls of a service go, and with which token. */
  async function moved([head, payload]: typeof QUERY | typeof PING, host: ServiceClient) {
    const { to } = await host.send(head, payload);
    if (!to) expect.fail('not moved');
    return { socket: join(dirname(stack.servicesSocket), to.socket), token: to.token };
  }

  /** A connection with the actor host. */
  async function withHost(token: string): Promise<ServiceClient> {
    const host = await connected();
    expect(await host.send({ token })).to.include({ ok: true });
    return host;
  }

  /** A token that has opened both services, from here: as if the handler had no user of its own. */
  async function inUse(token: string) {
    await writeFile(join(await tokens(), nonceOf(token)), '');
    const host = await withHost(token);
    const opened = await Promise.all(
      [QUERY, PING].map(async (call) => {
        const to = await moved(call, host);
        const client = await connected(to.socket);
        expect(await client.send({ token: to.token })).to.include({ ok: true });
        expect(await client.send(call[0], call[1])).to.include({ ok: true });
        return { ...to, client };
      }),
    );
    return {
      /** Expects that it, and what was got by it, opens nothing any more. */
      refused: async () => {
        await eventually(async () => expect(await tried(token)).to.include({ kind: 'unauthenticated' }));
        for (const { token, socket } of opened)
          expect(await tried(token, socket)).to.include({ kind: 'unauthenticated' });
        await Promise.all([host.closed, ...opened.map(({ client }) => client.closed)]);
      },
    };
  }

  const nonces = async () => readdir(await tokens());

  it('refuses the token of a handler from a process of another user, in services in Rust', async function () {
    if (!HAS_UNTRUSTED_USERS) this.skip();
    const token = await running();
    // The handler itself gets in.
    expect((await stack.gateway.get('/token?do=query')).body).to.equal('1');
    const to = await moved(QUERY, await withHost(token));
    expect(await tried(to.token, to.socket)).to.include({ kind: 'unauthenticated' });
    await writeFile(join(await tokens(), nonceOf(token)), String(process.getuid?.()));
    expect(await tried(to.token, to.socket)).to.include({ ok: true });
  });

  it('opens the services of a handler with its token on the same machine while it runs', async () => {
    const token = await running();
    await inUse(token);
    await inUse(token);
    expect(await nonces()).to.deep.equal([token.split('.')[1]]);
  });

  it('checks the token of a handler before the calls that are sent right after it', async () => {
    const client = await connected();
    const token = await running();
    const answers = await Promise.all([client.send({ token }), client.send(...QUERY)]);
    expect(answers[0]).to.include({ ok: true });
    expect(answers[1]).to.include({ kind: 'moved' });
  });

  it('refuses the token of a handler with the nonce of another process, or with a path as its nonce', async () => {
    const [endpoint, nonce = '', signature = ''] = (await running()).split('.');
    await writeFile(join(await tokens(), '12-34-abcdef'), '');
    for (const other of ['12-34-abcdef', `../tokens/${nonce}`, `./${nonce}`, '..', '', 'a'.repeat(500)])
      expect(await tried(`${endpoint}.${other}.${signature}`)).to.include({ kind: 'unauthenticated' });
  });

  it('refuses the token of a handler on another machine', async () => {
    const token = await running();
    const data = await tempDir('another-machine');
    const other = stack.launch('actor-host', { DATA_DIR: data.path });
    try {
      await other.ready;
      const socket = handlerSocket(await runDirectory(data.path));
      expect(await tried(await tokenFor(data.path, endpointId), socket)).to.include({ ok: true });
      expect(await tried(token, socket)).to.include({ kind: 'unauthenticated' });
      expect(await tried(token)).to.include({ ok: true });
    } finally {
      await other.end();
      await data.remove();
    }
  });

  it('keeps the token of a handler valid when another gateway of the machine starts and ends', async () => {
    const token = await running();
    const other = stack.launch('gateway', { GATEWAY_PORT: String(await freePort()) });
    await other.ready;
    expect(await tried(token)).to.include({ ok: true });
    await other.end();
    await inUse(token);
  });

  it('refuses the token of a handler process that another one has replaced', async () => {
    const token = await running();
    const { refused } = await inUse(token);
    await must(stack.api.put(`/api/endpoints/${endpointId}`, { code: SOURCE.replace('exit(3)', 'exit(4)') }));
    await must(stack.api.post(`/api/endpoints/${endpointId}/compile`));
    await must(stack.api.post(`/api/endpoints/${endpointId}/start`));
    await refused();
    await inUse(await running());
  });

  it('refuses the token of a handler process that has ended or was killed', async () => {
    const ends = [
      () => stack.gateway.get('/token?do=exit'),
      async () => {
        const { pid } = (await must(stack.api.get(`/api/endpoints/${endpointId}`))) as { pid: number };
        process.kill(pid, 'SIGKILL');
      },
    ];
    for (const end of ends) {
      const token = await running();
      const { refused } = await inUse(token);
      await end();
      await refused();
      await eventually(async () => expect(await running()).not.to.equal(token));
    }
  });

  it('leaves no file of a token behind when a handler process does not become ready', async () => {
    const before = await nonces();
    const never = { name: 'never', path: '/never', method: 'GET', domain: '*', code: DIES_AT_START };
    const { id } = (await must(stack.api.post('/api/endpoints', never))) as { id: string };
    await must(stack.api.post(`/api/endpoints/${id}/compile`));
    expect((await stack.api.post(`/api/endpoints/${id}/start`)).body).to.include({ ok: false });
    await must(stack.api.delete(`/api/endpoints/${id}`));
    await eventually(async () => expect(await nonces()).to.have.members(before));
  });

  it('refuses the token of a handler when its gateway was killed and another one has started', async () => {
    const token = await running();
    const { refused } = await inUse(token);
    await stack.processes.get('gateway')?.end('SIGKILL');
    await stack.start('gateway');
    await refused();
    await eventually(async () => expect(await running()).not.to.equal(token));
  });

  it('refuses the token of a handler when its endpoint has been stopped', async () => {
    const token = await running();
    const { refused } = await inUse(token);
    await must(stack.api.post(`/api/endpoints/${endpointId}/stop`));
    expect(await tried(token)).to.include({ kind: 'unauthenticated' });
    await refused();
    expect(await nonces()).not.to.include(token.split('.')[1]);
  });
});
