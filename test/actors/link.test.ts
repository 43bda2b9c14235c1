import { expect } from 'chai';
import type { Connection } from '../../src/actors/driver.js';
import { Link, type LinkState, type OpenedConnection } from '../../src/actors/link.js';
import { ServiceError } from '../../src/actors/service-error.js';
import { eventually } from '../support/eventually.js';

/** A backend whose moods a real one does not show on demand. */
class Backend {
  /** What the next attempts come to; the last one counts for all that follow. */
  answers: ('answers' | 'refuses' | 'is silent')[] = ['answers'];
  attempts = 0;
  closed = 0;
  readonly states: LinkState['kind'][] = [];
  lose: (error: Error) => void = () => undefined;

  open = async (onLost: (error: Error) => void): Promise<OpenedConnection> => {
    const answer = this.answers[Math.min(this.attempts++, this.answers.length - 1)];
    if (answer === 'refuses') throw new ServiceError('unavailable', 'too many connections');
    if (answer === 'is silent') throw new ServiceError('deadline', 'did not answer');
    this.lose = onLost;
    const connection: Connection = {
      test: async () => 'a backend',
      call: async () => ({}),
      close: async () => {
        this.closed++;
      },
    };
    return { connection, message: 'a backend', latencyMs: 1 };
  };

  link(): Link {
    return new Link({ open: this.open, onState: ({ kind }) => this.states.push(kind) });
  }
}

describe('link', () => {
  let backend: Backend;
  let link: Link;
  beforeEach(async () => {
    backend = new Backend();
    link = backend.link();
    await link.settled();
  });
  afterEach(() => link.close());

  it('closes a lost connection when the last call on it is over', async () => {
    const held = link.hold();
    held?.lost(new Error('lost'));
    expect(backend.closed).to.equal(0);
    held?.release();
    await eventually(() => expect(backend.closed).to.equal(1));
  });

  it('waits before it tries again when a connection is lost as soon as it was made', async () => {
    backend.lose(new Error('dropped'));
    expect(link.state).to.deep.equal({ kind: 'unreachable', reason: 'dropped' });
    expect(backend.attempts).to.equal(1);
    await eventually(() => expect(link.state.kind).to.equal('connected'));
    expect(backend.attempts).to.equal(2);
  });

  it('keeps its connection when the backend refuses one more, and gives it up when the backend is silent', async () => {
    backend.answers = ['answers', 'refuses', 'is silent'];
    link.verify();
    await eventually(() => expect(backend.attempts).to.equal(2));
    await Promise.resolve();
    expect(link.state.kind).to.equal('connected');
    await eventually(() => {
      link.verify();
      expect(backend.attempts).to.equal(3);
    });
    await eventually(() => expect(link.state.kind).to.not.equal('connected'));
  });

  it('tries no more once it is closed', async () => {
    backend.answers = ['refuses'];
    backend.lose(new Error('lost'));
    await link.close();
    const { attempts } = backend;
    await link.settled();
    expect(backend.attempts).to.equal(attempts);
    expect(link.hold()).to.equal(undefined);
  });
});
