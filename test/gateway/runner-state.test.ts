/** The state of an endpoint on a gateway, by what its runner knows. */
import { expect } from 'chai';
import type { HandlerProcess } from '../../src/gateway/handlers/handler-process.js';
import { type Situation, stateOf } from '../../src/gateway/runner/runner-state.js';
import { type RunningVersion, routedTo } from '../../src/gateway/runner/running-handlers.js';
import type { LimitsInForce } from '../../src/model/endpoint-limits.js';

const LIMITS: LimitsInForce = {
  ...{ memory_mb: 100, processes: 50, open_files: 50, timeout_ms: 1_000, idle_timeout_ms: 1_000 },
  ...{ concurrent_requests: 10, idle_ms: 900_000, min_instances: 0 },
};
const SETTINGS = { limits: LIMITS, environment: null };
const DEPLOYMENT = {
  ...{ id: 'd', sticky: null, request_id: 'r', confirmed: true },
  targets: [{ version: 1, percent: 100, artifact: 'a' }],
};
const HANDLER: RunningVersion = {
  ...{ version: 1, artifact: 'a', settings: SETTINGS, mustReplace: false },
  process: { instance: { id: 1, socket: '', takes: 'whole' } } as HandlerProcess,
};
const OLD: RunningVersion = { ...HANDLER, version: 2, artifact: 'b' };
const ROUTED = routedTo([HANDLER], SETTINGS, DEPLOYMENT);
const ASLEEP = { kind: 'asleep' } as const;

/** One that runs; then what is otherwise. */
function nameOf(otherwise: Partial<Situation>): string {
  return stateOf({
    desired: { ...SETTINGS, deployment: DEPLOYMENT, revision: 1 },
    ...{ isAwake: true, handlers: [HANDLER], routed: ROUTED, isObserved: true, isBackingOff: false },
    ...otherwise,
  }).name;
}

describe('state of an endpoint on a gateway', () => {
  const nothing = { ...SETTINGS, deployment: null, revision: 1 };
  const none = { kind: 'none' } as const;
  const rows: [string, string, Partial<Situation>][] = [
    ['running', 'its handler serves', {}],
    ['observing', 'that has not been saved', { isObserved: false }],
    ['starting', 'it has no handler', { handlers: [], routed: none, isObserved: false }],
    ['replacing', 'its handler has crashed', { handlers: [], isObserved: false }],
    ['replacing', 'another version serves', { handlers: [OLD], isObserved: false }],
    ['waking', 'a request has found it asleep', { handlers: [], routed: ASLEEP, isObserved: false }],
    ['switching', 'its handler has started', { routed: none, isObserved: false }],
    ['switching', 'an older one still runs', { handlers: [HANDLER, OLD], isObserved: false }],
    ['fallingAsleep', 'it has had no requests', { isAwake: false }],
    ['asleep', 'its handlers are ended', { isAwake: false, handlers: [], routed: ASLEEP, isObserved: false }],
    ['stopping', 'nothing is deployed any more', { desired: nothing, isObserved: false }],
    [
      'stopping',
      'its end was not saved',
      { desired: nothing, handlers: [], routed: none, isObserved: false },
    ],
    ['stopped', 'nothing runs', { desired: nothing, handlers: [], routed: none }],
    ['backingOff', 'its handler crashes again and again', { handlers: [], isBackingOff: true }],
  ];
  for (const [name, when, otherwise] of rows)
    it(`an endpoint is ${name} when ${when}`, () => expect(nameOf(otherwise)).to.equal(name));
});
