/**
 * SECRET_KEY is rotated on two machines as docs/DEPLOY.md says, while handlers serve, services are called and the API
 * is used.
 */
import { expect } from 'chai';
import { createSecretBox } from '../../../src/secrets/secret-box.js';
import { type RedisBackend, startRedisBackend } from '../../support/backends/redis.js';
import { type Balancer, startBalancer } from '../../support/balancer.js';
import { eventually } from '../../support/eventually.js';
import { call } from '../../support/http.js';
import { type Load, outcomes, startLoad } from '../../support/load.js';
import { type Machine, type Machines, startMachines } from '../../support/machines.js';
import { withClient } from '../../support/postgres.js';
import { must } from '../../support/processes.js';
import { activeService, bind, SECRET_KEY as OLD } from '../../support/test-services.js';

const NEW = 'the next secret key of the tests';
/** The settings of the machines, step by step. */
const STEPS: readonly Record<string, string>[] = [
  { SECRET_KEY: OLD, SECRET_KEY_NEXT: NEW },
  { SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: OLD },
  { SECRET_KEY: NEW },
];
/** Needs a secret of its own, and one of its service. */
const HANDLER = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(_req: Request) -> Response {
    let secret = std::env::var("OWN").unwrap_or_default();
    match RedisPool::new("cache").setex("key", &secret, 60) {
        Ok(_) => Response::text(200, format!("stored {secret}")),
        Err(error) => Response::text(502, error.to_string()),
    }
}
handler_loop!(handle);
`;

describe('a rotation of SECRET_KEY on two machines', function () {
  this.timeout(600_000);
  let machines: Machines;
  let redis: RedisBackend;
  let gateways: Balancer;
  let apis: Balancer;
  before(async () => {
    redis = await startRedisBackend();
    machines = await startMachines();
    gateways = await startBalancer([machines.a.gatewayUrl, machines.b.gatewayUrl]);
    apis = await startBalancer([machines.a.apiUrl, machines.b.apiUrl]);
  });
  after(async () => {
    await gateways?.close();
    await apis?.close();
    await machines?.close();
    await redis?.remove();
  });

  it('a rotation of SECRET_KEY on two machines fails no request, and leaves nothing under the old key', async () => {
    const { a, b } = machines;
    const both = [a, b];
    const setPassword = ({ api }: Machine) =>
      must(api.put('/api/secrets/CACHE_PASSWORD', { value: redis.config.password }));
    await setPassword(a);
    const service = await activeService(a.api, 'redis', {
      ...redis.config,
      password: { secret: 'CACHE_PASSWORD' },
    });
    const endpoint = await a.deploy({ path: '/uses', code: HANDLER });
    await bind(a.api, endpoint, service, 'cache');
    const setOwn = (machine: Machine, value: string) =>
      must(machine.api.put(`/api/endpoints/${endpoint}/secrets/OWN`, { value }));
    const servesOwn = (value: string) =>
      eventually(async () => {
        for (const { gatewayUrl } of both)
          expect((await call(`${gatewayUrl}/uses`)).text).to.equal(`stored ${value}`);
      });
    await setOwn(a, 'first');
    await servesOwn('first');

    const load = await startLoad({
      targets: [gateways.url],
      request: () => ({ path: '/uses', text: /^stored \w+$/ }),
      // Processes are started beside it.
      pauseMs: 20,
    });
    const apiLoad = await startLoad({
      targets: [apis.url],
      clients: 2,
      pauseMs: 20,
      request: (_, number) =>
        number % 10 === 0
          ? { path: `/api/services/${service}/test`, method: 'POST', text: /"connected":true/ }
          : { path: '/api/services', text: /"password":\{"secret":"CACHE_PASSWORD"\}/ },
    });
    try {
      for (const [step, env] of STEPS.entries()) {
        for (const machine of both) {
          await restart(machine, env, [load, apiLoad]);
          // What either machine writes is read by the other, whatever key each has.
          for (const writer of both) {
            const value = `step${step}${machine.hostname.at(-1)}${writer.hostname.at(-1)}`;
            await setOwn(writer, value);
            await setPassword(writer);
            await servesOwn(value);
          }
        }
        const shown = ((await must(a.api.get('/api/health'))) as { key_rotation: unknown }).key_rotation;
        if (env['SECRET_KEY_PREVIOUS'] === undefined) expect(shown).to.equal(null);
        else await nothingLeft(both);
      }
    } finally {
      await Promise.all([load.stop(), apiLoad.stop()]);
    }
    const failures = [...load.failures(), ...apiLoad.failures()];
    expect(failures, JSON.stringify(outcomes(failures))).to.deep.equal([]);

    await withClient(machines.database.url, async (client) => {
      const [oldId] = createSecretBox(OLD).keyIds;
      const [newId] = createSecretBox(NEW).keyIds;
      const { rows: tables } = await client.query<{ name: string }>(
        "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
      );
      let sealed = 0;
      for (const { name } of tables) {
        const text = JSON.stringify((await client.query(`SELECT * FROM "${name}"`)).rows);
        // The keys of all processes are shown in the table of nodes.
        expect(text, name).not.to.match(new RegExp(`v2:${oldId}:|"v1:`));
        sealed += text.split(`v2:${newId}:`).length - 1;
      }
      expect(sealed, 'a config, its secret, and that of the handler').to.equal(3);
    });
    for (const { api } of both)
      expect(await must(api.post(`/api/services/${service}/test`))).to.include({ connected: true });
  });

  /** Restarts all processes: the gateway ends first, so that no handler misses the actor host. */
  async function restart(
    machine: Machine,
    env: Record<string, string>,
    loads: readonly Load[],
  ): Promise<void> {
    for (const name of ['gateway', 'actor-host', 'worker', 'web'] as const) {
      const ended = await machine.processes.get(name)?.end();
      expect(ended, `${name} of ${machine.hostname}`).to.deep.equal({ code: 0, signal: null });
      if (name === 'gateway') continue;
      await machine.start(name, env);
      if (name === 'actor-host') await machine.start('gateway', env);
    }
    const before = loads.map((load) => load.served());
    await eventually(() => {
      loads.forEach((load, at) => {
        expect(load.served() + load.failures().length).to.be.at.least((before[at] ?? 0) + 50);
      });
    });
  }

  /** Waits until operators are told that the previous key can be removed, by the API and the log of the workers. */
  async function nothingLeft(both: readonly Machine[]): Promise<void> {
    await eventually(async () => {
      for (const { api, processes } of both) {
        expect(await must(api.get('/api/health'))).to.have.deep.property('key_rotation', { left: 0 });
        const messages = processes.get('worker')?.logged.lines.map(({ msg }) => msg ?? '') ?? [];
        expect(messages.some((message) => message.includes('SECRET_KEY_PREVIOUS can be removed'))).to.equal(
          true,
        );
      }
    });
  }
});
