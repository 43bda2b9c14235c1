/** Queued requests and schedules that the API refuses. */
import { randomUUID } from 'node:crypto';
import { expect } from 'chai';
import { startApi, type TestApi } from '../support/api.js';
import { expectData, expectFailure, NO_ID } from '../support/expect.js';

describe('invalid queued requests and schedules', () => {
  let api: TestApi;
  let id: string;
  before(async () => {
    api = await startApi({ config: { JOBS_QUEUED_LIMIT: 2, JOBS_QUEUED_MB: 1 } });
    const body = { name: 'E', path: '/a/{b}', method: 'PUT', domain: '*' };
    id = expectData<{ id: string }>(await api.post('/api/endpoints', body), 201).id;
  });
  after(() => api?.close());

  it('refuses queued requests and schedules with invalid fields, naming the field', async () => {
    const at = `/api/endpoints/${id}`;
    const path = '/a/1';
    for (const [body, message] of [
      [{}, /body\.path: is required/],
      [{ path: 'https://example.org/' }, /not a URL/],
      [{ path, url: 'https://example.org/' }, /body\.url: is not accepted: .* never to a URL; give a path/],
      [{ path, method: 'GET' }, /body\.method: must be PUT/],
      [{ path, delay_ms: -1 }, /body\.delay_ms/],
      [{ path, attempts: 0 }, /body\.attempts/],
      [{ path, backoff_ms: 'long' }, /body\.backoff_ms/],
      [{ path, deduplication_id: '' }, /body\.deduplication_id/],
      [{ path, headers: { Expect: '100-continue' } }, /body\.headers/],
    ] as const) {
      expectFailure(await api.post(`${at}/enqueue`, body), 'invalid_input', message);
    }
    const cron = '* * * * *';
    for (const [body, message] of [
      [{ path }, /body\.cron/],
      [{ path, cron: 'sometimes' }, /body\.cron: must have five fields/],
      [{ path, cron: '61 * * * *' }, /body\.cron: is no cron expression/],
      [{ path, cron: '0 0 31 2 *' }, /body\.cron/],
      [{ path, cron: '* * * *' }, /body\.cron/],
      [{ path, cron: 'H * * * *' }, /body\.cron/],
      [{ path, cron, timezone: 'Mars/Phobos' }, /body\.timezone: is no time zone/],
      [{ path, cron, timezone: '' }, /body\.timezone/],
      [{ cron }, /body\.path: is required/],
      [{ path, cron, body: 'a', body_base64: 'YQ==' }, /exclude each other/],
    ] as const) {
      expectFailure(await api.post(`${at}/schedules`, body), 'invalid_input', message);
    }
    expect(expectData(await api.get(`${at}/jobs`))).to.deep.equal([]);
    expect(expectData(await api.get(`${at}/schedules`))).to.deep.equal([]);
    for (const missing of [
      `/api/jobs/${NO_ID}`,
      `/api/endpoints/${NO_ID}/jobs`,
      `/api/endpoints/${NO_ID}/schedules`,
    ])
      expectFailure(await api.get(missing), 'not_found');
    expectFailure(await api.post(`/api/endpoints/${NO_ID}/enqueue`, {}), 'not_found');
  });

  it('refuses more queued requests and schedules than their limits allow', async () => {
    const enqueue = () => api.post(`/api/endpoints/${id}/enqueue`, { path: '/a/1' });
    for (let number = 0; number < 2; number++) expectData(await enqueue(), 201);
    expectFailure(await enqueue(), 'queue_full', /JOBS_QUEUED_LIMIT/);
    const schedule = { cron: '@daily', path: '/a/1' };
    const url = `/api/endpoints/${id}/schedules`;
    for (let number = 0; number < 100; number++) expectData(await api.post(url, schedule), 201);
    expectFailure(await api.post(url, schedule), 'queue_full', /delete one first/);
  });

  it('refuses more bytes of queued requests and schedules than the limit of their domain', async () => {
    const endpoint = async (domain: string) => {
      const body = { name: 'E', path: `/${randomUUID()}`, method: 'PUT', domain };
      return expectData<{ id: string }>(await api.post('/api/endpoints', body), 201).id;
    };
    for (const host of ['greedy.example', 'quiet.example'])
      expectData(await api.post('/api/domains', { name: host, host }), 201);
    const [one, other] = [await endpoint('greedy.example'), await endpoint('greedy.example')];
    const body = 'x'.repeat(400_000);
    const queue = (to: string, more = {}) => api.post(`/api/endpoints/${to}/enqueue`, { body, ...more });
    const schedules = `/api/endpoints/${other}/schedules`;
    const full = /queued requests and schedules of the domain "greedy\.example".*JOBS_QUEUED_MB/;
    const job = expectData<{ job_id: string }>(await queue(one, { deduplication_id: 'same' }), 201);
    const timed = { cron: '@daily', body };
    const { id: schedule } = expectData<{ id: string }>(await api.post(schedules, timed), 201);
    expectFailure(await queue(one), 'queue_full', full);
    expectFailure(await queue(other), 'queue_full', full);
    expectFailure(await api.post(schedules, timed), 'queue_full', full);
    const change = (length: number) => api.put(`${schedules}/${schedule}`, { body: 'x'.repeat(length) });
    expectFailure(await change(700_000), 'queue_full', full);
    const large = { body: 'x'.repeat(1_100_000) };
    expectFailure(
      await queue(one, large),
      'queue_full',
      /The request takes 11\d{5} bytes.*1 MiB.*: send less/,
    );
    // The same request again needs no room, and another domain has its own.
    expect(expectData(await queue(one, { deduplication_id: 'same' }), 201)).to.deep.equal(job);
    expectData(await queue(await endpoint('quiet.example')), 201);
    expectData(await change(10));
    expectData(await queue(other), 201);
  });

  it('counts the bytes of queued requests of all hosts without a domain together', async () => {
    const own = await startApi({ config: { JOBS_QUEUED_MB: 1 } });
    try {
      const body = 'x'.repeat(600_000);
      const queue = async (domain: string) => {
        const endpoint = { name: 'E', path: '/', method: 'PUT', domain };
        const { id: to } = expectData<{ id: string }>(await own.post('/api/endpoints', endpoint), 201);
        return own.post(`/api/endpoints/${to}/enqueue`, { body });
      };
      expectData(await queue('one.example'), 201);
      for (const host of ['two.example', '*'])
        expectFailure(await queue(host), 'queue_full', /schedules of hosts without a domain.*JOBS_QUEUED_MB/);
    } finally {
      await own.close();
    }
  });
});
