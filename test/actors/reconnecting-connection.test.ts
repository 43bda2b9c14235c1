import { expect } from 'chai';
import type { Connection } from '../../src/actors/driver.js';
import {
  type ConnectionState,
  type OpenedConnection,
  ReconnectingConnection,
} from '../../src/actors/reconnecting-connection.js';
import { ServiceError } from '../../src/actors/service-error.js';
import { eventually } from '../support/eventually.js';

/** A backend with failures that a real one does not show on demand. */
class Backend {
  /** Outcomes of the next attempts; the last one is repeated. */
  answers: ('answers' | 'refuses' | 'is silent')[] = ['answers'];
  attempts = 0;
  closed = 0;
  readonly states: ConnectionState['kind'][] = [];
  lose: (error: Error) => void = () => undefined;

  open = async (onLost: (error: Error) => void): Promise<OpenedConnection> => {
    const answer = this.answers[Math.min(this.attempts++, this.answers.length - 1)];
    if (answer === 'refuses') throw new ServiceError('unavailable', 'too many connections');
    if (answer === 'is silent') throw new ServiceError('deadline', 'did not answer');
    this.lose = onLost;
    const opened: Connection = {
      test: async () => 'a backend',
      close: async () => {
        this.closed++;
      },
    };
    return { connection: opened, message: 'a backend', latencyMs: 1 };
  };

  connect(): ReconnectingConnection {
    return new ReconnectingConnection({ open: this.open, onState: ({ kind }) => this.states.push(kind) });
  }
}

describe('reconnecting connection', () => {
  let backend: Backend;
  let connection: ReconnectingConnection;
  beforeEach(async () => {
    backend = new Backend();
    connection = backend.connect();
    await connection.settled();
  });
  afterEach(() => connection.close());

  it('closes a lost connection when the last call on it has ended', async () => {
    const lease = connection.acquire();
    lease?.lost(new Error('lost'));
    expect(backend.closed).to.equal(0);
    lease?.release();
    await eventually(() => expect(backend.closed).to.equal(1));
  });

  it('waits before it reconnects when a connection is lost right after it was opened', async () => {
    backend.lose(new Error('dropped'));
    expect(connection.state).to.deep.equal({ kind: 'unreachable', reason: 'dropped' });
    expect(backend.attempts).to.equal(1);
    await eventually(() => expect(connection.state.kind).to.equal('connected'));
    expect(backend.attempts).to.equal(2);
  });

  it('keeps a connection when the backend refuses another, and retires it when the backend is silent', async () => {
    backend.answers = ['answers', 'refuses', 'is silent'];
    connection.verify();
    await eventually(() => expect(backend.attempts).to.equal(2));
    await Promise.resolve();
    expect(connection.state.kind).to.equal('connected');
    await eventually(() => {
      connection.verify();
      expect(backend.attempts).to.equal(3);
    });
    await eventually(() => expect(connection.state.kind).to.not.equal('connected'));
  });

  it('stops reconnecting after the connection was closed', async () => {
    backend.answers = ['refuses'];
    backend.lose(new Error('lost'));
    await connection.close();
    const { attempts } = backend;
    await connection.settled();
    expect(backend.attempts).to.equal(attempts);
    expect(connection.acquire()).to.equal(undefined);
  });
});
