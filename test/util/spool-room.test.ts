/** Room for bodies of requests on the disk. */
import { expect } from 'chai';
import { AppError } from '../../src/errors.js';
import { SpoolRoom } from '../../src/util/spool-room.js';

describe('the room for bodies of requests on the disk', () => {
  const roomFor = (bodies: number, bytes: number) =>
    new SpoolRoom({
      ...{ title: 'letters that have not been sent yet', code: 'too_many_uploads' },
      ...{ bodies, bodiesSetting: 'LETTERS', bytes, bytesSetting: 'LETTERS_BYTES' },
    });
  const refusal = (work: () => unknown): AppError => {
    try {
      work();
    } catch (thrown) {
      if (thrown instanceof AppError) return thrown;
      throw thrown;
    }
    return expect.fail('it was let in');
  };

  it('an owner has as many bodies as one may have, and a place again when one was read', () => {
    const room = roomFor(2, 100);
    const [first] = [room.begin('a'), room.begin('a')];
    const refused = refusal(() => room.begin('a'));
    expect(refused).to.include({ code: 'too_many_uploads', status: 429 });
    expect(refused.message).to.match(/^You have 2 letters that have not been sent yet \(LETTERS\); try/);
    expect(refused.extras.details).to.deep.equal({ retry_after_seconds: 5 });
    room.begin('b');
    first?.end();
    first?.end();
    room.begin('a');
    refusal(() => room.begin('a'));
  });

  it('several bodies of an owner have half of the room, and one may have more', () => {
    const room = roomFor(9, 100);
    const only = room.begin('a');
    only.take(40);
    const second = room.begin('a');
    second.take(10);
    expect(refusal(() => second.take(1))).to.include({
      code: 'too_many_uploads',
      message:
        'Your letters that have not been sent yet have more than 50 bytes together (half of LETTERS_BYTES); ' +
        'try again when some of them have.',
    });
    second.end();
    only.take(1_000);
    expect(room.bytes).to.equal(1_040);
    only.end();
    expect(room.bytes).to.equal(0);
  });

  it('a body goes on growing while another of its owner is refused that has begun later', () => {
    const room = roomFor(9, 100);
    const [first, second] = [room.begin('a'), room.begin('a')];
    second.take(20);
    first.take(1_000);
    expect(refusal(() => second.take(1)).code).to.equal('too_many_uploads');
    first.end();
    second.take(1_000);
  });

  it('a body takes no more room after its end, whatever still arrives of it', () => {
    const room = roomFor(9, 100);
    const place = room.begin('a');
    place.take(10);
    place.end();
    place.take(20);
    expect(room.bytes).to.equal(0);
    place.end();
    room.begin('b').take(100);
    expect(room.bytes).to.equal(100);
  });

  it('an owner with nothing is let in when the room is full, with one body', () => {
    const room = roomFor(9, 100);
    for (const owner of ['a', 'b']) room.begin(owner).take(50);
    const first = room.begin('c');
    first.take(30);
    const second = room.begin('c');
    const refused = refusal(() => second.take(1));
    expect(refused).to.include({ code: 'busy', status: 503 });
    expect(refused.message).to.match(
      /^All letters that have not been sent yet have 100 bytes together \(LETTERS_BYTES\)/,
    );
  });
});
