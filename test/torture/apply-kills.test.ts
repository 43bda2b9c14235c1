/**
 * Processes are killed at every step of an apply. Each time, all of it is done in the end, or nothing; nothing is lost,
 * and the next apply works.
 */
import { expect } from 'chai';
import pg from 'pg';
import {
  type ApplyShown,
  applyFiles,
  type Files,
  type FolderEndpoint,
  folderOf,
  type HeldRow,
  holdRow,
  planOf,
} from '../support/applies.js';
import { eventually } from '../support/eventually.js';
import { expectData } from '../support/expect.js';
import { greeting, numbered, slowToCompile, slowToStart, until } from '../support/handler-sources.js';
import { call } from '../support/http.js';
import { type ProcessName, type Stack, startStack } from '../support/processes.js';

type Step = 'compiling' | 'preparing' | 'committing' | 'converging' | 'undoing';

/** Who is killed, and while the apply is in which state. */
const KILLS: readonly (readonly [step: Step, ...killed: ProcessName[]])[] = [
  ['compiling', 'web'],
  ['compiling', 'worker'],
  ['compiling', 'gateway'],
  ['preparing', 'web'],
  ['preparing', 'worker'],
  ['preparing', 'gateway'],
  ['committing', 'web'],
  ['committing', 'worker'],
  ['committing', 'gateway'],
  ['converging', 'web'],
  ['converging', 'worker'],
  ['converging', 'gateway'],
  ['undoing', 'web'],
  ['undoing', 'worker'],
  ['undoing', 'gateway'],
  ['preparing', 'worker', 'gateway'],
  ['committing', 'worker', 'gateway'],
  ['converging', 'worker', 'gateway'],
  ['converging', 'web', 'worker', 'gateway'],
  ['undoing', 'web', 'worker', 'gateway'],
];

/** After so long, a handler that the undoing is about starts no more. */
const UNTIL_MS = 20_000;
/** A killed worker is known to be lost, and its apply has ended. */
const ENDED_MS = 120_000;

interface ApplyRow {
  readonly id: string;
  readonly state: string;
  readonly attempt: number;
  readonly error: string | null;
  readonly is_over: boolean;
}

describe('an apply whose processes are killed', function () {
  this.timeout(300_000);
  let stack: Stack;
  let database: pg.Client;
  before(async () => {
    stack = await startStack();
    database = new pg.Client({ connectionString: stack.databaseUrl });
    await database.connect();
  });
  after(async () => {
    await database?.end();
    await stack?.close();
  });

  const latest = async (): Promise<ApplyRow> => {
    const { rows } = await database.query<ApplyRow>(
      'SELECT id, state, attempt, error, finished_at IS NOT NULL AS is_over FROM applies ORDER BY created_at DESC LIMIT 1',
    );
    return rows[0] as ApplyRow;
  };
  const reaches = (state: string) =>
    eventually(async () => {
      const row = await latest();
      if (row.state !== state) throw new Error(`It is ${row.state} (${row.error}), not ${state}.`);
    });
  const ask = async (host: string, path: string) => {
    const answer = await call(`${stack.gatewayUrl}${path}`, { method: 'POST', headers: { host } });
    return answer.status === 200 ? answer.text.trim() : String(answer.status);
  };
  const answersOf = async (host: string) =>
    Promise.all(['/changed', '/kept', '/gone', '/new'].map((path) => ask(host, path)));

  const old: readonly FolderEndpoint[] = [
    { route: '/changed', code: numbered(1) },
    { route: '/kept', code: numbered(2) },
    { route: '/gone', code: greeting(3) },
  ];

  /** The new code, which makes the step take long where no lock does. */
  function newFolder(step: Step, host: string, number: number, over: number): Files {
    const code = {
      compiling: slowToCompile(1_000_000, number),
      preparing: slowToStart(4, 4),
      committing: numbered(4),
      converging: numbered(4),
      undoing: until(4),
    };
    return folderOf('kills', host, [
      { route: '/changed', code: numbered(11) },
      { route: '/kept', code: numbered(2), description: 'changed' },
      { route: '/new', code: code[step], variables: { UNTIL: String(over) } },
    ]);
  }

  /** Waits until somebody else waits for a lock of a row, too. */
  const waiting = (sessions: number) =>
    eventually(async () => {
      const { rows } = await database.query(
        `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
      );
      expect(rows.length).to.be.at.least(sessions);
    });

  /** Has the apply reach a step and stay there; resolves with what holds it. */
  async function hold(step: Step, endpointId: string, over: number): Promise<HeldRow | undefined> {
    if (step === 'compiling' || step === 'preparing') {
      await reaches(step);
      return undefined;
    }
    const first = await holdRow(stack.databaseUrl, endpointId);
    await reaches('committing');
    await waiting(1);
    if (step === 'committing') return first;
    // Who asks second has the row as soon as the commit is done: nothing observes it then, or nothing undoes it.
    const second = holdRow(stack.databaseUrl, endpointId, step === 'converging' ? 'UPDATE' : 'NO KEY UPDATE');
    await waiting(2);
    if (step === 'undoing') await eventually(() => expect(Date.now()).to.be.above(over + 500));
    await first.release();
    const held = await second;
    await reaches(step);
    return held;
  }

  for (const [number, [step, ...killed]] of KILLS.entries()) {
    it(`an apply is done or undone when ${killed.join(' and ')} got SIGKILL while it was ${step}`, async () => {
      const host = `kill${number}.example`;
      const before = folderOf('kills', host, old);
      expectData<ApplyShown>(await applyFiles(stack.api, before, '&prune=true'));
      const list = await stack.api.get(`/api/endpoints?domain=${host}`);
      const ids = new Map(expectData<{ id: string; path: string }[]>(list).map(({ id, path }) => [path, id]));
      await stack.api.put(`/api/endpoints/${ids.get('/gone')}/secrets/GREETING`, { value: 'secret' });
      const OLD = ['1', '2', '3 secret', '404'];
      expect(await answersOf(host)).to.deep.equal(OLD);

      const over = Date.now() + UNTIL_MS;
      const files = newFolder(step, host, number, over);
      const { plan_hash } = await planOf(stack.api, files, '&prune=true');
      const applying = stack.api.post(`/api/apply?plan_hash=${plan_hash}&prune=true`, { files });
      // Web may be killed while it waits.
      const answered = applying.catch(() => undefined);
      await eventually(async () => expect(await latest()).to.include({ is_over: false }));
      const held = await hold(step, ids.get('/changed') ?? '', over);
      await Promise.all(killed.map((name) => stack.processes.get(name)?.end('SIGKILL')));
      const restarted = Promise.all(killed.map((name) => stack.start(name)));
      await held?.release();
      await restarted;
      await answered;

      await eventually(async () => expect(await latest()).to.include({ is_over: true }), ENDED_MS);
      const ended = await latest();
      expect(ended, ended.error ?? '').to.include({ state: step === 'undoing' ? 'undone' : 'succeeded' });
      const answerOfNew = step === 'compiling' ? String(1_000_000 + number) : '4';
      const wanted = ended.state === 'succeeded' ? ['11', '2', '404', answerOfNew] : OLD;
      await eventually(async () => expect(await answersOf(host)).to.deep.equal(wanted));
      const whole = ended.state === 'succeeded' ? files : before;
      expect((await planOf(stack.api, whole, '&prune=true')).changes).to.deep.equal([]);
      const { rows } = await database.query(`SELECT id FROM deployments WHERE outcome = 'pending'`);
      expect(rows).to.deep.equal([]);

      const next = folderOf('kills', host, [{ route: '/kept', code: numbered(2), description: 'next' }]);
      expectData<ApplyShown>(await applyFiles(stack.api, next, '&prune=true'));
      expect(await ask(host, '/kept')).to.equal('2');
    });
  }
});
