/** Handlers that use up what they can get: each is held by its limits, and its neighbour answers all its requests. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { describeAttacks, RESOURCES } from '../../support/hostile/attacks.js';
import {
  type Attacker,
  type Neighbourhood,
  startNeighbourhood,
} from '../../support/hostile/neighbourhood.js';
import { ATTACKS, atStart } from '../../support/hostile/sdk-attacks.js';
import { must } from '../../support/processes.js';

/** What goes on beside requests does so while the handler answers so many, and its neighbour too. */
const REQUESTS_BESIDE = 50;
const LIMITS = { memory_mb: 128, processes: 64, open_files: 64, timeout_ms: 1_500 };

describeAttacks('handlers that exhaust resources', RESOURCES, (level, it) => {
  let neighbourhood: Neighbourhood;
  before(async () => {
    neighbourhood = await startNeighbourhood({
      sandbox: level,
      env: { START_TIMEOUT_MS: '3000', HANDLER_MEMORY_MB: '3072' },
    });
  });
  after(() => neighbourhood.close());

  const lines = (attacker: Attacker) =>
    (neighbourhood.stack.processes.get('gateway')?.logged.lines ?? []).filter(
      ({ endpoint_id }) => endpoint_id === attacker.id,
    );
  const attack = (run: (attacker: Attacker) => Promise<void>, limits: Record<string, number> = LIMITS) =>
    neighbourhood.attack(ATTACKS, limits, run);
  /** An action whose own request is answered at once: what it does goes on beside its requests. */
  const begin = async (attacker: Attacker, action: string) =>
    expect(await attacker.do(action)).to.include({ status: 200, text: 'done' });
  const serveOn = async (attacker: Attacker) => {
    for (let answered = 0; answered < REQUESTS_BESIDE; answered++) await attacker.recovered();
    await neighbourhood.neighbourServes(REQUESTS_BESIDE);
  };
  /** An action after which its process is gone, with the request in it, for this reason. */
  const expectCrash = async (attacker: Attacker, action: string, reason: RegExp) => {
    const answer = await attacker.do(action);
    expect(answer.status, answer.text).to.equal(502);
    await eventually(() => expect(attacker.crashes().join()).to.match(reason));
    await attacker.recovered();
  };

  describe('time', () => {
    it('an endless loop in a request exceeds its deadline, and the process of the handler is replaced', () =>
      attack(async (attacker) => {
        const { pid } = await attacker.view();
        expect((await attacker.do('spin')).status).to.equal(504);
        await attacker.recovered();
        await eventually(async () => expect((await attacker.view()).pid).not.to.be.oneOf([pid, null]));
      }));

    it('a handler answers 504 to 64 requests with endless loops at once, and serves again', () =>
      attack(
        async (attacker) => {
          const answers = await Promise.all(Array.from({ length: 64 }, () => attacker.do('spin')));
          for (const { status } of answers) expect(status).to.equal(504);
          await attacker.recovered();
        },
        { ...LIMITS, processes: 100 },
      ));

    it('a handler that loops beside its requests, in a thread and in other sessions, serves on', () =>
      attack(async (attacker) => {
        await begin(attacker, 'spin-in-thread');
        await begin(attacker, 'spin-in-sessions');
        await serveOn(attacker);
        expect(attacker.crashes()).to.deep.equal([]);
      }));

    it('restarts a handler that uses more than its share of a core for ten seconds', (reason) =>
      attack(
        async (attacker) => {
          await begin(attacker, 'spin-in-sessions');
          await eventually(() => expect(attacker.crashes()).to.have.length(1), 30_000);
          expect(attacker.crashes()[0]).to.match(reason);
          await attacker.recovered();
        },
        { ...LIMITS, cpu_percent: 20 },
      ));

    it('fails the start of a handler that loops without end before it is ready', async (reason) => {
      const { stack } = neighbourhood;
      const created = await must(
        stack.api.post('/api/endpoints', {
          name: 'late',
          path: '/late',
          method: 'GET',
          domain: '*',
          code: atStart('loop {}'),
        }),
      );
      const { id } = created as { id: string };
      await must(stack.api.post(`/api/endpoints/${id}/compile`));
      const { status, body } = await stack.api.post(`/api/endpoints/${id}/start`);
      expect(status, JSON.stringify(body)).to.equal(422);
      expect((body as { error: string }).error).to.match(reason);
      await must(stack.api.delete(`/api/endpoints/${id}`));
    });
  });

  describe('memory', () => {
    it('restarts a handler that recurses without end', (reason) =>
      attack((attacker) => expectCrash(attacker, 'recurse', reason)));

    it('restarts a handler that allocates a gigabyte at once', (reason) =>
      attack((attacker) => expectCrash(attacker, 'memory-at-once', reason)));

    it('restarts a handler that allocates a gigabyte little by little', (reason) =>
      attack((attacker) => expectCrash(attacker, 'memory-slowly', reason)));

    it('restarts a handler that allocates a gigabyte in many processes', (reason) =>
      attack(async (attacker) => {
        await begin(attacker, 'memory-in-children');
        await eventually(() => expect(attacker.crashes()[0]).to.match(reason));
        await attacker.recovered();
      }));

    it('restarts a handler with too much memory of a process whose first thread has ended', (reason) =>
      attack(async (attacker) => {
        await attacker.do('memory-without-first-thread');
        await eventually(() => expect(attacker.crashes()[0]).to.match(reason));
        await attacker.recovered();
      }));

    it('limits a handler that writes a gigabyte into files to 64 MiB', (reason) =>
      attack(async (attacker) => {
        if (level === 'namespaces') {
          expect((await attacker.do('memory-in-files')).text).to.match(reason);
        } else {
          await attacker.do('keep-in-files');
          await eventually(() => expect(attacker.crashes()[0]).to.match(reason));
        }
        await attacker.recovered();
      }));

    it('refuses a handler files in memory without a name', (reason) =>
      attack(async (attacker) => {
        expect((await attacker.do('memory-in-memfd')).text).to.match(reason);
      }));
  });

  describe('processes and files', () => {
    it('a handler answers 504 to a request with a fork bomb, and serves again', () =>
      attack(async (attacker) => {
        expect((await attacker.do('fork-bomb')).status).to.equal(504);
        await attacker.recovered();
      }));

    it('a handler that starts 10,000 threads gets no more than its limit', () =>
      attack(async (attacker) => {
        expect(Number((await attacker.do('threads')).text)).to.be.within(1, 64);
        await attacker.recovered();
      }));

    it('a handler that opens 100,000 files gets no more than its limit', () =>
      attack(async (attacker) => {
        expect(Number((await attacker.do('files')).text)).to.be.within(1, 64);
        await attacker.recovered();
      }));

    it('restarts a handler that creates a million empty files', (reason) =>
      attack((attacker) => expectCrash(attacker, 'many-files', reason), {
        ...LIMITS,
        timeout_ms: 20_000,
      }));
  });

  describe('output', () => {
    const printed = (attacker: Attacker) => lines(attacker).filter(({ stream }) => stream !== undefined);

    it('a handler that prints lines without end serves on, and the log says what is left out', (reason) =>
      attack(async (attacker) => {
        await begin(attacker, 'print-lines');
        await serveOn(attacker);
        // What is too much is not logged, and that is said, with how much it was.
        await eventually(() => {
          const said = lines(attacker).filter(({ dropped }) => Number(dropped) > 0);
          expect(said.length).to.be.at.least(2);
          expect(said[0]?.msg).to.match(reason);
        });
        expect(printed(attacker).length).to.be.at.least(500);
        expect(attacker.crashes()).to.deep.equal([]);
      }));

    it('a handler that prints a line without end serves on, and none of it is logged', () =>
      attack(async (attacker) => {
        await begin(attacker, 'print-without-end');
        await serveOn(attacker);
        // It is logged when it ends, cut.
        expect(printed(attacker)).to.deep.equal([]);
        expect(attacker.crashes()).to.deep.equal([]);
      }));
  });

  describe('answers', () => {
    it('restarts a handler whose response of a gigabyte is over its memory limit', (reason) =>
      attack((attacker) => expectCrash(attacker, 'megabytes&mb=1024', reason)));

    it('a response of a gigabyte within the memory limit of its handler is a 500', () =>
      attack(
        async (attacker) => {
          const { status, text } = await attacker.do('megabytes&mb=1024');
          expect(status, text.slice(0, 200)).to.equal(500);
          expect(JSON.parse(text)).to.have.all.keys('error');
          await attacker.recovered();
          expect(attacker.crashes()).to.deep.equal([]);
        },
        { ...LIMITS, memory_mb: 3_072, timeout_ms: 30_000 },
      ));
  });

  describe('ends', () => {
    it('panics of a handler fail their requests alone', () =>
      attack(async (attacker) => {
        expect((await attacker.do('panic')).status).to.equal(500);
        expect((await attacker.do('panic-in-thread')).status).to.equal(200);
        expect(attacker.crashes()).to.deep.equal([]);
      }));

    it('restarts a handler that panics while panicking', (reason) =>
      attack((attacker) => expectCrash(attacker, 'panic-twice', reason)));
    it('restarts a handler that calls exit(0) in a request', (reason) =>
      attack((attacker) => expectCrash(attacker, 'exit', reason)));
    it('restarts a handler that calls abort() in a request', (reason) =>
      attack((attacker) => expectCrash(attacker, 'abort', reason)));

    it('repeated crashes set an endpoint to error, with the reason', (reason) =>
      attack(async (attacker) => {
        await eventually(async () => {
          await attacker.do('memory-at-once');
          expect(await attacker.view()).to.include({ status: 'error' });
        });
        expect((await attacker.view()).last_error).to.match(reason);
      }));

    it('fails the start of a handler that panics at its start, with the reason', async (reason) => {
      const { stack } = neighbourhood;
      const endpoint = { name: 'p', path: '/panics', method: 'GET', domain: '*' };
      const code = atStart('panic!("not today")');
      const { id } = (await must(stack.api.post('/api/endpoints', { ...endpoint, code }))) as {
        id: string;
      };
      await must(stack.api.post(`/api/endpoints/${id}/compile`));
      const { status, body } = await stack.api.post(`/api/endpoints/${id}/start`);
      expect(status, JSON.stringify(body)).to.equal(422);
      expect((body as { error: string }).error).to.match(reason);
      await must(stack.api.delete(`/api/endpoints/${id}`));
    });
  });
});
