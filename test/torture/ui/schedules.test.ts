/** Schedules of an endpoint in the web UI: what is typed into one, when it runs next, and its runs. */
import { expect } from 'chai';
import { nextRun } from '../../../src/queues/cron.js';
import { type Database, openDatabase } from '../../../src/store/database.js';
import { runSchedule } from '../../../src/store/schedules.js';
import { eventually } from '../../support/eventually.js';
import { expectData } from '../../support/expect.js';
import { type Stack, startStack } from '../../support/processes.js';
import { openBrowser, type Ui } from '../../support/ui.js';

interface Schedule {
  readonly id: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly next_run_at: string;
}

const HOUR_MS = 3_600_000;

describe('schedules in the web UI', () => {
  let stack: Stack;
  let database: Database;
  let ui: Ui;
  let id: string;
  before(async () => {
    stack = await startStack({ processes: ['web'] });
    database = openDatabase(stack.databaseUrl, () => undefined);
    ui = await openBrowser(stack.apiUrl);
    const body = { name: 'scheduled', path: '/scheduled', method: 'GET', domain: '*' };
    ({ id } = expectData<{ id: string }>(await stack.api.post('/api/endpoints', body), 201));
  });
  after(async () => {
    await ui?.close();
    await database?.close();
    await stack?.close();
  });

  const address = () => `/ui/endpoints/${id}/settings?section=schedules`;
  const all = () => `/api/endpoints/${id}/schedules`;
  const add = async (fields: object) => expectData<Schedule>(await stack.api.post(all(), fields), 201);
  const remove = (schedule: string) => stack.api.delete(`${all()}/${schedule}`);
  const stored = async () => expectData<Schedule[]>(await stack.api.get(all()))[0];

  it('the form of a schedule saves on Enter, and refuses a line that is not a header at its field', async () => {
    const schedule = await add({ cron: '0 8 * * *', path: '/scheduled', headers: { 'X-Kept': 'yes' } });
    const { page, close } = await ui.open(address());
    const dialog = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Edit 0 8 * * *' }).click();
    await dialog.getByLabel('Path').fill('/scheduled?typed=1');
    await dialog.getByLabel('Path').press('Enter');
    await dialog.waitFor({ state: 'detached' });
    expect(await stored()).to.include({ path: '/scheduled?typed=1' });

    await page.getByRole('button', { name: 'Edit 0 8 * * *' }).click();
    for (const [line, problem] of [
      ['NoColonHere', 'is not a name and a value, such as NoColonHere: value'],
      [': no name', 'is not a name and a value, such as X-Name: value'],
      ['x-kept: twice', 'has the name of another line'],
    ] as const) {
      await dialog.getByLabel('Headers').fill(`X-Kept: no: not this\n${line}`);
      await dialog.getByRole('button', { name: 'Save' }).click();
      await dialog.getByText(`Line 2: ${problem}`).waitFor();
      expect(await dialog.locator('[aria-invalid=true]').inputValue()).to.include(line);
    }
    expect((await stored())?.headers).to.deep.equal({ 'X-Kept': 'yes' });
    await dialog.getByLabel('Headers').fill('X-Kept: no: not this\n');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect((await stored())?.headers).to.deep.equal({ 'X-Kept': 'no: not this' });
    await remove(schedule.id);
    await close();
  });

  it('the next run of a schedule is shown by the calendar of the time zone of the browser', async () => {
    const schedule = await add({ cron: '0 8 * * *', timezone: 'UTC', path: '/scheduled' });
    const next = Date.parse(schedule.next_run_at);
    const said = async (hoursBefore: number, timezoneId: string) => {
      const { page, close } = await ui.open('about:blank', { timezoneId });
      await page.clock.setFixedTime(next - hoursBefore * HOUR_MS);
      await page.goto(address());
      const text = await page.getByText('Next run').locator('time').first().textContent();
      await close();
      return text;
    };
    // 20:35 and 7:00 there; in Tokyo the run is at 17:00.
    expect(await said(35.42, 'UTC')).to.equal('in 2 days');
    expect(await said(35.42, 'Asia/Tokyo')).to.equal('tomorrow');
    expect(await said(25, 'UTC')).to.equal('tomorrow');
    expect(await said(11, 'UTC')).to.equal('in 11 hours');
    expect(await said(-25, 'UTC')).to.equal('yesterday');
    expect(await said(-41, 'UTC')).to.equal('2 days ago');
    await remove(schedule.id);
  });

  it('the settings show the new next run and the runs of a schedule that has run meanwhile', async () => {
    const schedule = await add({ cron: '* * * * * *', path: '/scheduled' });
    const run = () =>
      eventually(async () => {
        const job = await runSchedule(database, schedule.id, nextRun, {
          maxAttempts: 1,
          backoffMs: 1_000,
          maxBytes: 2 ** 30,
        });
        expect(job).not.to.equal(undefined);
      });
    const { page, close } = await ui.open('about:blank');
    // What others have just changed is told in the first moments, and would have all read again.
    await page.route('**/api/events', (route) => route.abort());
    await page.goto(address());
    const next = page.getByText('Next run').locator('time').first();
    const before = await next.getAttribute('datetime');
    const runs = page.getByRole('button', { name: 'Runs of * * * * * *' });
    const dialog = page.getByRole('dialog');
    await runs.click();
    await dialog.getByText('It has not run yet.').waitFor();
    await run();
    const rows = dialog.getByRole('row');
    await rows.nth(1).waitFor();
    await dialog.getByRole('button', { name: 'Close' }).click();
    await eventually(async () => expect(await next.getAttribute('datetime')).not.to.equal(before));
    await remove(schedule.id);
    await close();
  });
});
