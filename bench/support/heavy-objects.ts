/** Calls that cost much because of few objects that are as large as they may be. */
import type { HttpClient } from '../../test/support/client.js';
import { expectData } from '../../test/support/expect.js';
import { largeValidation } from '../../test/support/large-policies.js';
import { askForPlan } from '../../test/support/plans.js';

/** Reads an answer to its end. */
type Read = (path: string) => Promise<{ readonly status: number }>;
type Call = () => Promise<{ readonly status: number }>;

const OBJECTS = 50;
/** The most of a body in JSON. */
const BODY = 'x'.repeat(3.9 * 2 ** 20);
const POLICIES = 'policies.test';
const SCHEDULES = 'schedules.test';
const MODULES = 'modules.test';
/** Code that names thousands of files, each in a folder with a long path, and that is just not long itself. */
const NAMES = `#[cfg(a)]${'mod abcdefg{'.repeat(127)}${'mod c{mod b;}'.repeat(2_300)}${'}'.repeat(127)}`;
/** Rust that takes long to look through; nothing names it, so that it is not compiled. */
const LOOKED_THROUGH = 'r/'.repeat(1.9 * 2 ** 20);
const SERVES = `use rust_edge_gateway_sdk::prelude::*;
fn handle(_: Request) -> Response { Response::ok("") }
handler_loop!(handle);
`;

/** 18,000 values. */
const validate = largeValidation(6_000);

export async function heavyCalls(api: HttpClient, read: Read): Promise<Readonly<Record<string, Call>>> {
  const create = async (path: string, body: object) =>
    expectData<{ id: string }>(await api.post(path, body), 201).id;
  for (let at = 0; at < OBJECTS; at++) {
    const host = at === 0 ? POLICIES : `heavy${at}.test`;
    await create('/api/domains', { name: host, host, ...(at > 0 && { policies: { validate } }) });
    const endpoint = { name: `p${at}`, path: `/p/${at}`, method: 'POST', domain: POLICIES };
    await create('/api/endpoints', { ...endpoint, policies: { validate } });
  }
  await create('/api/domains', { name: SCHEDULES, host: SCHEDULES });
  const scheduled = { name: 's', path: '/s', method: 'POST', domain: SCHEDULES };
  const schedules = `/api/endpoints/${await create('/api/endpoints', scheduled)}/schedules`;
  for (let at = 0; at < OBJECTS; at++)
    await create(schedules, { cron: '@yearly', path: '/s', enabled: false, body: BODY });
  await create('/api/domains', { name: MODULES, host: MODULES });
  for (let at = 0; at < OBJECTS; at++) {
    const endpoint = { name: `m${at}`, path: `/m/${at}`, method: 'GET', domain: MODULES };
    await create('/api/endpoints', { ...endpoint, entry: `a${at}.rs`, code: NAMES });
  }
  const beside = { name: 'l', path: '/l', method: 'GET', domain: MODULES, code: SERVES };
  const long = await create('/api/endpoints', { ...beside, files: { 'x.rs': LOOKED_THROUGH } });
  const compile = () => api.post(`/api/endpoints/${long}/compile`);
  expectData(await compile());
  const edge = JSON.stringify({ stack: 'heavy', domains: [{ host: 'new.test' }] });
  return {
    [`export ${OBJECTS} endpoints with policies of 18,000 values`]: () =>
      read(`/api/export?domain=${POLICIES}`),
    [`list ${OBJECTS} domains with policies of 18,000 values`]: () =>
      read(`/api/domains?search=heavy&limit=${OBJECTS}`),
    [`list ${OBJECTS} schedules with bodies of 3.9 MiB`]: () => read(schedules),
    [`export ${OBJECTS} schedules with bodies of 3.9 MiB`]: () => read(`/api/export?domain=${SCHEDULES}`),
    [`export ${OBJECTS} endpoints whose code names 2,300 modules`]: () =>
      read(`/api/export?domain=${MODULES}`),
    'compile again what has 3.8 MiB of Rust beside it': compile,
    [`plan a domain beside ${OBJECTS} schedules with bodies of 3.9 MiB`]: () =>
      askForPlan(api, { 'edge.yaml': edge }),
  };
}
