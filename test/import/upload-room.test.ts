/** Room for bodies of requests on the disk. */
import { expect } from 'chai';
import { AppError } from '../../src/errors.js';
import { UploadRoom } from '../../src/import/upload-room.js';

describe('the room for bodies that wait to be read', () => {
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
    const room = new UploadRoom({ bodies: 2, bytes: 100 });
    const [first] = [room.begin('a'), room.begin('a')];
    const refused = refusal(() => room.begin('a'));
    expect(refused).to.include({ code: 'too_many_imports', status: 429 });
    expect(refused.extras.details).to.deep.equal({ retry_after_seconds: 5 });
    room.begin('b');
    first?.end();
    first?.end();
    room.begin('a');
    refusal(() => room.begin('a'));
  });

  it('several bodies of an owner have half of the room, and one may have more', () => {
    const room = new UploadRoom({ bodies: 9, bytes: 100 });
    const only = room.begin('a');
    only.take(40);
    const second = room.begin('a');
    second.take(10);
    expect(refusal(() => second.take(1)).code).to.equal('too_many_imports');
    second.end();
    only.take(1_000);
    expect(room.bytes).to.equal(1_040);
    only.end();
    expect(room.bytes).to.equal(0);
  });

  it('what still arrives of a body after its end takes no room', () => {
    const room = new UploadRoom({ bodies: 9, bytes: 100 });
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
    const room = new UploadRoom({ bodies: 9, bytes: 100 });
    for (const owner of ['a', 'b']) room.begin(owner).take(50);
    const first = room.begin('c');
    first.take(30);
    const second = room.begin('c');
    const refused = refusal(() => second.take(1));
    expect(refused).to.include({ code: 'busy', status: 503 });
    expect(refused.message).to.match(/100 bytes.*IMPORTS_SPOOLED_LIMIT_BYTES/);
  });
});
