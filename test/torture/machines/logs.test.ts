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
    let ms = req.query_param_as("ms").unwrap_or(0);
    std::thread::sleep(std::time::Duration::from_millis(ms));
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

  it('the log is followed without a gap or a double, on either machine, while gateways are killed', async () => {
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

  it('the log is followed without a gap or a double under load, while gateways are killed', async () => {
    const { a, b } = machines;
    const id = await a.deploy({ path: '/load', code: CODE });
    const query = `endpoint_id=${id}&kind=output`;
    const follow = async (machine: Machine, lastEventId?: string) => {
      const opened = await tailLog(`${machine.apiUrl}/api/logs?${query}&limit=1`, lastEventId);
      tails.push(opened);
      return opened;
    };
    /** What each machine has answered; cleared when its gateway is killed, which may not have written it. */
    const answered = new Map<Machine, string[]>([a, b].map((machine) => [machine, []]));
    const certain: string[] = [];
    let isOver = false;
    let count = 0;
    const load = async (machine: Machine) => {
      while (!isOver) {
        const text = `${count++}`;
        const said = answered.get(machine);
        const { status } = await call(`${machine.gatewayUrl}/load?n=${text}`).catch(() => ({ status: 0 }));
        if (status === 204) said?.push(`line ${text}`);
        await delay(5);
      }
    };
    let tail = await follow(a);
    const loading = [load(a), load(b)];
    const received: string[] = [];
    const leave = async () => {
      await tail.close();
      received.push(...tail.received.map(({ entry }) => entry.message));
      return tail.ids.at(-1);
    };
    try {
      for (let round = 0; round < 6; round++) {
        const [own, other] = round % 2 === 0 ? [a, b] : [b, a];
        const before = tail.received.length;
        await eventually(() => expect(tail.received.length).to.be.above(before + 50));
        await own.processes.get('gateway')?.end('SIGKILL');
        answered.set(own, []);
        certain.push(...(answered.get(other) ?? []));
        answered.set(other, []);
        tail = await follow(other, await leave());
        await own.start('gateway');
      }
    } finally {
      isOver = true;
      await Promise.all(loading);
    }
    for (const said of answered.values()) certain.push(...said);
    const written = async () => {
      const messages: string[] = [];
      for (let cursor = ''; ; ) {
        const answer = await call(`${a.apiUrl}/api/logs?${query}&limit=1000${cursor}`);
        const { data } = JSON.parse(answer.text) as {
          data: { items: { message: string; fields: { target?: string } }[]; next_cursor: string | null };
        };
        messages.push(...data.items.map(({ message }) => message).filter((text) => text.startsWith('line ')));
        if (data.next_cursor === null) return messages;
        cursor = `&cursor=${data.next_cursor}`;
      }
    };
    // What gateways say themselves of a handler is none of these.
    const seen = () =>
      [...received, ...tail.received.map(({ entry }) => entry.message)].filter((text) =>
        text.startsWith('line '),
      );
    await eventually(async () => {
      const all = new Set(await written());
      expect(certain.filter((message) => !all.has(message))).to.deep.equal([]);
      expect(new Set(seen()).size).to.equal(all.size);
    });
    expect(seen().length, 'doubles').to.equal(new Set(seen()).size);
    expect(certain.length).to.be.above(100);
  });

  it('the log holds up no request while PostgreSQL is away, and has what was printed meanwhile', async () => {
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

  it('a series has percentiles over both machines, exact to 5 %', async () => {
    const { a, b } = machines;
    const id = await a.deploy({ path: '/durations', code: CODE });
    // The fast ones on one machine, the slow ones on the other.
    const answers = await Promise.all(
      Array.from({ length: 80 }, (_, at) => call(`${(at < 60 ? a : b).gatewayUrl}/durations?ms=${at * 3}`)),
    );
    for (const { status, text } of answers) expect(status, text).to.equal(204);
    const read = async <T>(path: string) =>
      (JSON.parse((await call(`${b.apiUrl}${path}`)).text) as { data: T }).data;
    const since = new Date(Date.now() - 3_600_000).toISOString();
    const durations = await eventually(async () => {
      const { items } = await read<{ items: { duration_ms: number }[] }>(
        `/api/logs?endpoint_id=${id}&kind=request&limit=1000`,
      );
      expect(items).to.have.length(80);
      return items.map(({ duration_ms }) => duration_ms).sort((left, right) => left - right);
    });
    await eventually(async () => {
      const { points } = await read<{ points: Record<string, number>[] }>(
        `/api/series?endpoint_id=${id}&step=1d&since=${since}`,
      );
      // An hour ago it may have been another day.
      const point = points.find(({ requests = 0 }) => requests > 0);
      expect(point?.['requests']).to.equal(80);
      for (const percent of [50, 95, 99]) {
        const exact = durations[Math.ceil((percent / 100) * durations.length) - 1] ?? 0;
        expect(point?.[`p${percent}`], `p${percent}`).to.be.closeTo(exact, 0.05 * exact);
      }
    });
  });

  it('a series counts the requests of both machines, whichever of them is queried', async () => {
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
