/** Handlers that speak the frames wrongly, or not at all: they harm themselves, and are started anew. */
import { expect } from 'chai';
import { eventually } from '../../support/eventually.js';
import { describeAttacks, PROTOCOL } from '../../support/hostile/attacks.js';
import {
  type Attacker,
  type Neighbourhood,
  startNeighbourhood,
} from '../../support/hostile/neighbourhood.js';
import { RAW_ATTACKS, rawAtStart } from '../../support/hostile/raw-attacks.js';
import { ATTACKS } from '../../support/hostile/sdk-attacks.js';
import { must } from '../../support/processes.js';

const LIMITS = { memory_mb: 256, timeout_ms: 1_500 };

describeAttacks('handlers that violate the protocol', PROTOCOL, (level, it) => {
  let neighbourhood: Neighbourhood;
  before(async () => {
    neighbourhood = await startNeighbourhood({ sandbox: level, env: { START_TIMEOUT_MS: '3000' } });
  });
  after(() => neighbourhood.close());

  const attack = (run: (attacker: Attacker) => Promise<void>) =>
    neighbourhood.attack(RAW_ATTACKS, LIMITS, run);

  it('answers of a handler that HTTP does not allow are a 502, and fail nothing else', () =>
    attack(async (attacker) => {
      const { pid } = await attacker.view();
      const heads = [
        ...[0, 99, 100, 101, 199, 1000, -200, 200.5, '200', null].map((status) => ({
          status,
          headers: [],
        })),
        ...[
          ['X', 'a\r\nSet-Cookie: b=1'],
          ['X', 'a\nb'],
          ['X', 'a\0b'],
          ['X\r\nY', 'a'],
          ['X Y', 'a'],
          ['X:', 'a'],
          ['', 'a'],
          ['\u00e4', 'a'],
          ['X'],
          ['X', 1],
        ].map((headers) => ({ status: 200, headers })),
        { status: 200, headers: 'X: y' },
        { status: 200 },
        [],
        null,
      ].map((head) => JSON.stringify(head));
      for (const head of [...heads, '{', '', 'x'.repeat(100_000)]) {
        const { status, text } = await attacker.do('head', { body: head });
        expect(status, head.slice(0, 100)).to.equal(502);
        expect(JSON.parse(text)).to.have.all.keys('error');
      }
      await attacker.recovered();
      expect(attacker.crashes()).to.deep.equal([]);
      expect((await attacker.view()).pid).to.equal(pid);
    }));

  it('drops headers about the framing from an answer of a handler', () =>
    attack(async (attacker) => {
      const headers = ['Content-Length', '999', 'Transfer-Encoding', 'chunked', 'content-length', '1'];
      const head = JSON.stringify({
        status: 200,
        headers: [...headers, 'Connection', 'upgrade', 'X', 'y'],
      });
      const answer = await attacker.do('head', { body: head });
      expect(answer).to.include({ status: 200, text: 'raw' });
      expect(answer.headers).to.include({ 'content-length': '3', x: 'y' });
      expect(answer.headers).not.to.have.any.keys('transfer-encoding', 'upgrade');
    }));

  it('rejects line ends in headers that a handler sets with the SDK', () =>
    neighbourhood.attack(ATTACKS, LIMITS, async (attacker) => {
      for (const header of ['X:a\r\nSet-Cookie: b=1', 'X\r\nY:a', 'X:a\0', 'X Y:a', ':a']) {
        const { status, headers } = await attacker.do('headers', { body: header });
        expect(status, header).to.be.oneOf([500, 502]);
        expect(headers).not.to.have.any.keys('set-cookie', 'y');
      }
      await attacker.recovered();
    }));

  const violations = [
    ...['twice', 'unasked', 'unasked-part', 'flood', 'request', 'garbage', 'huge', '4-gigabytes'],
    ...['close', 'close-all'],
  ] as const;
  for (const action of violations) {
    it(`restarts a handler that violates the protocol: ${action}` as const, (reason) =>
      attack(async (attacker) => {
        // Answered once, it has been answered.
        expect((await attacker.do(action)).status).to.equal(action === 'twice' ? 200 : 502);
        await eventually(() => expect(attacker.crashes().join()).to.match(reason));
        await attacker.recovered();
      }),
    );
  }

  it('answers 502 when the head of a response is over the size limit', () =>
    attack(async (attacker) => {
      expect((await attacker.do('large-head')).status).to.equal(502);
      await attacker.recovered();
    }));

  for (const action of ['unfinished', 'stop-reading'] as const) {
    it(`answers 504 when a handler violates the protocol: ${action}` as const, () =>
      attack(async (attacker) => {
        const [answer, other] = await Promise.all([
          attacker.do(action),
          attacker.do(action, { body: 'x'.repeat(1_000_000) }),
        ]);
        expect([answer.status, other.status]).to.deep.equal([504, 504]);
        await attacker.recovered();
      }),
    );
  }

  it('delivers a response that a handler sends byte by byte', () =>
    attack(async (attacker) => {
      expect(await attacker.do('byte-by-byte')).to.include({ status: 200, text: 'raw' });
      expect(attacker.crashes()).to.deep.equal([]);
    }));

  it('a gateway does not read output on the control stream of a handler', () =>
    attack(async (attacker) => {
      const { status, text } = await attacker.do('write-to-control');
      expect(status, text).to.equal(200);
      expect(Number(text)).to.be.below(2 * 1024 * 1024);
      await attacker.recovered();
    }));

  it('a handler that removes its socket serves on', () =>
    attack(async (attacker) => {
      expect((await attacker.do('remove-socket')).status).to.equal(200);
      await attacker.recovered();
    }));

  const starts = [
    ['does not exist', ''],
    ['is a file', 'std::fs::write(&path, "no socket").expect("a file");'],
    [
      'is a link to a socket of another process',
      'std::os::unix::fs::symlink("/run/services/services.sock", &path).expect("a link");',
    ],
    [
      'is a socket without a listener',
      'std::mem::forget(std::os::unix::net::UnixDatagram::bind(&path).expect("a socket"));',
    ],
  ] as const;
  for (const [what, action] of starts) {
    it(`sets an endpoint to error when the socket of its handler ${what}` as const, async (reason) => {
      const { api } = neighbourhood.stack;
      const endpoint = { name: 's', path: '/socketless', method: 'GET', domain: '*' };
      const code = rawAtStart(action);
      const { id } = (await must(api.post('/api/endpoints', { ...endpoint, code }))) as { id: string };
      await must(api.post(`/api/endpoints/${id}/compile`));
      await api.post(`/api/endpoints/${id}/start`);
      await eventually(async () => {
        const { status, last_error } = (await must(api.get(`/api/endpoints/${id}`))) as Awaited<
          ReturnType<Attacker['view']>
        >;
        expect(status).to.equal('error');
        expect(last_error).to.match(reason);
      });
      await must(api.delete(`/api/endpoints/${id}`));
    });
  }
});
