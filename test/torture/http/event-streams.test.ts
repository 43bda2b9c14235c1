/** Thousands of streams of server-sent events at a time. */
import { expect } from 'chai';
import { processFigures } from '../../../bench/soak/figures.js';
import { type EventCounts, type EventStreams, openEventStreams } from '../../support/event-streams.js';
import { eventually } from '../../support/eventually.js';
import { call } from '../../support/http.js';
import { type Stack, startStack } from '../../support/processes.js';
import { TICKING_EVENTS } from '../../support/streaming-sources.js';

const STREAMS = 2_000;
/** Of each stream, one a second: all are open before the first one ends. */
const EVENTS = 20;
/** For each stream, of the front and the handler. */
const BYTES_FOR_ONE = 40_000;
/** The clients and the servers share the processors. */
const LIMIT_MS = 100_000;

describe('streams of events', function () {
  this.timeout(240_000);
  let stack: Stack;
  let streams: EventStreams | undefined;
  before(async () => {
    stack = await startStack({
      processes: ['web', 'worker', 'gateway'],
      env: { GATEWAY_CONCURRENCY: '2' },
    });
    await stack.deploy({ path: '/events', code: TICKING_EVENTS });
  });
  afterEach(() => streams?.end());
  after(() => stack.close());

  const open = async (count: number, events: number) => {
    streams = openEventStreams(`${stack.gatewayUrl}/events?count=${events}`, count);
    return streams;
  };
  const memory = () => {
    const { front, handler } = processFigures({ stack });
    return front.pss + handler.pss;
  };
  const inHandler = async () => Number((await call(`${stack.gatewayUrl}/events?do=open`)).text);
  const inFlight = async () => {
    const { body } = await stack.api.get('/metrics');
    return Number(/^edge_gateway_requests_in_flight (\d+)$/m.exec(String(body))?.[1]);
  };
  const areAllOpen = (counts: EventCounts) => counts.broken > 0 || counts.open === STREAMS;

  it(`${STREAMS} streams of events at a time bring all events in order, and take little memory`, async () => {
    await (await open(1, 1)).until(({ complete }) => complete === 1);
    await streams?.end();
    const before = memory();
    const many = await open(STREAMS, EVENTS);
    expect((await many.until(areAllOpen, LIMIT_MS)).open).to.equal(STREAMS);
    expect((memory() - before) / STREAMS, 'bytes for a stream').to.be.below(BYTES_FOR_ONE);
    const isOver = ({ complete, broken }: EventCounts) => complete + broken === STREAMS;
    const { complete, events, misplaced } = await many.until(isOver, LIMIT_MS);
    expect([complete, events, misplaced]).to.deep.equal([STREAMS, STREAMS * EVENTS, 0]);
    await eventually(async () => expect([await inHandler(), await inFlight()]).to.deep.equal([0, 0]));
  });

  it(`${STREAMS} streams of events at a time end in the handler when their clients leave`, async () => {
    const many = await open(STREAMS, 1_000_000);
    expect((await many.until(areAllOpen, LIMIT_MS)).open).to.equal(STREAMS);
    expect(await inHandler()).to.equal(STREAMS);
    await many.end();
    await eventually(async () => expect([await inHandler(), await inFlight()]).to.deep.equal([0, 0]));
  });
});
