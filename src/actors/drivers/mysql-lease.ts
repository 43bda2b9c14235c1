/** A connection to MySQL or MariaDB, while a call or a transaction has it. */
import mysql from 'mysql2';
import type { DriverCall } from '../driver.js';
import { ServiceError } from '../service-error.js';
import type { Sockets } from '../sql/sockets.js';
import { connectionOptions, type MysqlConfig } from './mysql-connect.js';
import { type MysqlResult, type MysqlStatement, type OpenConnection, runStatement } from './mysql-query.js';

/** Ending a statement on the server may take this long. */
const KILL_TIMEOUT_MS = 5_000;

export class MysqlLease {
  isOver = false;
  /** Ends the statement under way, for whoever waits for it. */
  private stop: ((error: Error) => void) | undefined;

  constructor(
    private readonly connection: OpenConnection,
    private readonly config: MysqlConfig,
    private readonly sockets: Sockets,
  ) {}

  /** Runs one statement; when it is aborted, or its result is too large, the connection is destroyed. */
  async run(statement: MysqlStatement, call: DriverCall | undefined): Promise<MysqlResult> {
    const cancelled = new ServiceError('deadline', 'the statement was cancelled');
    call?.onAbort(() => this.destroy(cancelled));
    // It was aborted before.
    if (this.isOver) throw cancelled;
    try {
      return await runStatement(this.connection, statement, (stop) => {
        this.stop = stop;
      });
    } catch (thrown) {
      // Rows of it are still on their way.
      if (thrown instanceof ServiceError) this.destroy();
      throw thrown;
    } finally {
      this.stop = undefined;
      call?.onAbort(undefined);
    }
  }

  release(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.connection.release();
  }

  /** Closes the connection, and ends what it does on the server. */
  destroy(reason = new ServiceError('unavailable', 'the connection was closed')): void {
    if (this.isOver) return;
    this.isOver = true;
    kill(this.connection.threadId, this.config, this.sockets);
    this.connection.destroy();
    this.connection.stream.destroy();
    this.stop?.(reason);
  }
}

/** Ends a connection on the server, by another one; as good as it gets, nobody waits for it. */
function kill(threadId: number, config: MysqlConfig, sockets: Sockets): void {
  const other = mysql.createConnection({
    ...connectionOptions(config, sockets),
    connectTimeout: KILL_TIMEOUT_MS,
  });
  other.on('error', () => other.destroy());
  other.query({ sql: `KILL ${threadId}`, timeout: KILL_TIMEOUT_MS }, () => other.destroy());
}
