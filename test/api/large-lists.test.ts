/** Lists, exports and plans of few objects that are large. */
import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { parse } from 'yaml';
import { startApi, type TestApi } from '../support/api.js';
import { expectData } from '../support/expect.js';
import { largeValidation } from '../support/large-policies.js';
import { askForPlan, type Files, type ShownPlan } from '../support/plans.js';

const HOST = 'large.example';

interface Row {
  readonly id: string;
}

describe('few objects that are large', () => {
  let api: TestApi;
  let schedules: string;
  /** Of schedules: text, bytes that are no text, and one that is as large as a body may be. */
  const bodies = [
    { body: 'ä line\n'.repeat(100_000) },
    { body_base64: randomBytes(1_000_000).toString('base64') },
    { body: 'x'.repeat(3_900_000) },
    {},
  ];
  const validate = largeValidation(5_000);
  before(async () => {
    api = await startApi();
    const create = async (path: string, body: object) => expectData<Row>(await api.post(path, body), 201).id;
    for (const host of [HOST, 'second.example'])
      await create('/api/domains', { name: host, host, policies: { validate } });
    const domains = expectData<Row[]>(await api.get('/api/domains'));
    for (const { id } of domains)
      await create('/api/collections', { name: 'c', domain_id: id, policies: { validate } });
    const endpoint = { name: 'E', path: '/e', method: 'POST', domain: HOST, policies: { validate } };
    schedules = `/api/endpoints/${await create('/api/endpoints', endpoint)}/schedules`;
    for (const body of bodies)
      await create(schedules, { cron: '@daily', path: '/e', enabled: false, ...body });
  });
  after(() => api?.close());

  it('lists show each as it is shown alone', async () => {
    for (const list of [schedules, '/api/domains', '/api/collections']) {
      const rows = expectData<Row[]>(await api.get(list));
      for (const row of rows) expect(row).to.deep.equal(expectData(await api.get(`${list}/${row.id}`)));
      expect(rows, list).to.have.length(list === schedules ? 4 : 2);
    }
    const shown = expectData<(typeof bodies)[number][]>(await api.get(schedules));
    expect(shown.map(({ body, body_base64 }) => ({ body, body_base64 }))).to.deep.equal(
      bodies.map((body) => ({ body: undefined, body_base64: undefined, ...body })),
    );
  });

  it('the export has all of them, and is an empty plan when it is applied', async () => {
    const { files } = expectData<{ files: Files }>(await api.get('/api/export'));
    const text = files['edge.yaml'] ?? '';
    const { endpoints, domains } = parse(text) as {
      endpoints: { schedules: object[]; policies: object }[];
      domains: { policies: object }[];
    };
    expect(endpoints[0]?.policies).to.deep.equal({ validate });
    expect(endpoints[0]?.schedules).to.have.length(4);
    expect(domains.map(({ policies }) => policies)).to.deep.equal([{ validate }, { validate }]);
    expect(expectData<ShownPlan>(await askForPlan(api, files)).changes).to.deep.equal([]);
    const changed = { ...files, 'edge.yaml': text.replace('body: xxx', 'body: yxx') };
    const plan = expectData<ShownPlan>(await askForPlan(api, changed, '&adopt=true'));
    const fields = plan.changes.flatMap(({ fields }) => fields).filter(({ path }) => path === 'schedules');
    expect(fields).to.have.length(1);
    const before = fields[0]?.before as { readonly bytes: number };
    expect(before).to.have.keys('bytes', 'sha256');
    expect(fields[0]?.after).to.include({ bytes: before.bytes });
  });
});
