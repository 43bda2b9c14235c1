/** The log of two machines as one: followed while gateways are killed, and PostgreSQL is away. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { call } from '../../support/http.js';
import { type LogTail, tailLog } from '../../support/log-tail.js';
import { type Machine, type Machines, startMachines } from '../../support/machines.js';

const CODE = `
use rust_edge_gateway_sdk::prelude::*;
fn handle(req: Request) -> Response {
    println!("line {}", req.query_param("n").map_or("", String::as_str));
    Response::no_content()
}
handler_loop!(handle);
`;

describe('the log of two machines', function () {
  this.timeout(180_000);
  let machines: Machines;
  const tails: LogTail[] = [];
  before(async () => {
    machines = await startMachines();
    await machines.a.deploy({ path: '/line', code: CODE });
  });
  after(async () => {
    for (const tail of tails) await tail.close();
    await machines?.close();
  });

  let number = 0;
  const say = async (machine: Machine) => {
    const text = `line ${number++}`;
    await eventually(async () => {
      const { status } = await call(`${machine.gatewayUrl}/line?n=${text.slice(5)}`);
      expect(status).to.equal(204);
    });
    return text;
  };
  const follow = async (machine: Machine, lastEventId?: string) => {
    const tail = await tailLog(`${machine.apiUrl}/api/logs?kind=output&search=line&limit=1`, lastEventId);
    tails.push(tail);
    return tail;
  };

  it('is followed without a gap or a double, on either machine, while gateways are killed', async () => {
    const { a, b } = machines;
    const said: string[] = [];
    let tail = await follow(a);
    const received: string[] = [];
    for (let round = 0; round < 4; round++) {
      const [own, other] = round % 2 === 0 ? [a, b] : [b, a];
      for (let count = 0; count < 10; count++) said.push(await say(count % 2 === 0 ? own : other));
      // What a gateway has not written when it is killed is lost, as the documentation says.
      await eventually(() =>
        expect([...received, ...tail.received.map(({ entry }) => entry.message)]).to.have.members(said),
      );
      await own.processes.get('gateway')?.end('SIGKILL');
      for (let count = 0; count < 5; count++) said.push(await say(other));
      const last = tail.received.at(-1)?.eventId;
      await tail.close();
      received.push(...tail.received.map(({ entry }) => entry.message));
      tail = await follow(other, last);
      await own.start('gateway');
    }
    said.push(await say(a));
    await eventually(() =>
      expect(received.length + tail.received.length, 'entries of all tails').to.be.at.least(said.length),
    );
    received.push(...tail.received.map(({ entry }) => entry.message));
    expect(received).to.have.members(said);
    expect(new Set(received).size).to.equal(received.length);
  });

  it('holds up no request while PostgreSQL is away, and has what was said meanwhile', async () => {
    const { a, b } = machines;
    const tail = await follow(b);
    const before = await say(a);
    await eventually(() => expect(tail.received.map(({ entry }) => entry.message)).to.include(before));
    await a.postgres.down();
    const said: string[] = [];
    const until = performance.now() + 10_000;
    while (performance.now() < until) {
      const text = `line ${number++}`;
      expect((await call(`${a.gatewayUrl}/line?n=${text.slice(5)}`)).status).to.equal(204);
      said.push(text);
      await delay(20);
    }
    await a.postgres.up();
    await eventually(() => {
      const messages = tail.received.map(({ entry }) => entry.message);
      expect(messages.slice(-said.length)).to.deep.equal(said);
    });
  });

  it('has figures of what both have served, on either machine', async () => {
    const { a, b } = machines;
    const id = await a.deploy({ path: '/counted', code: CODE });
    for (let count = 0; count < 12; count++) {
      const { status } = await call(`${(count % 3 === 0 ? a : b).gatewayUrl}/counted`);
      expect(status).to.equal(204);
    }
    for (const machine of [a, b]) {
      await eventually(async () => {
        const answer = await call(`${machine.apiUrl}/api/series?endpoint_id=${id}`);
        const { points } = (JSON.parse(answer.text) as { data: { points: { requests: number }[] } }).data;
        expect(points.reduce((sum, { requests }) => sum + requests, 0)).to.equal(12);
      });
    }
  });
});
