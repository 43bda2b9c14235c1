/** Short forms of calls of SQL drivers. */
import { expect } from 'chai';
import type { Driver } from '../../src/actors/driver.js';
import type { DriverAnswer } from '../../src/actors/operations.js';
import type { ServiceConfig, ServiceType } from '../../src/model/service-configs.js';
import {
  type CallableConnection,
  type CallableTransaction,
  openCallable,
  pendingCall,
  type TestDriverCall,
} from './callable-connection.js';

/** A parameter as handlers send it. */
export type Param = null | boolean | number | string | Readonly<Record<string, string>>;

export interface Rows {
  readonly columns: readonly string[];
  readonly rows: readonly (readonly unknown[])[];
  readonly rows_affected: number;
  readonly last_insert_id: number | null;
}

interface Callable {
  call(call: TestDriverCall): Promise<DriverAnswer>;
}

export interface SqlConnection {
  readonly connection: CallableConnection;
  /** All errors that the driver reported by `onLost`. */
  readonly lost: readonly Error[];
  begin(): Promise<CallableTransaction>;
}

export function sqlCall(
  operation: string,
  sql: string,
  params: readonly Param[] = [],
  signal?: AbortSignal,
): TestDriverCall {
  return pendingCall(operation, undefined, JSON.stringify({ sql, params }), signal);
}

/** Connects as an actor does. */
export async function connectSql<T extends ServiceType>(
  driver: Driver<T>,
  config: ServiceConfig<T>,
  options: { readonly signal?: AbortSignal } = {},
): Promise<SqlConnection> {
  const connection = await openCallable(driver, config, options);
  return { connection, lost: connection.lost, begin: () => connection.begin(sqlCall('begin', '')) };
}

/** The JSON text of the result of a query. */
export async function queryText(on: Callable, sql: string, params: readonly Param[] = []): Promise<string> {
  const { payload } = await on.call(sqlCall('query', sql, params));
  return Buffer.from(payload ?? '').toString();
}

export async function query(on: Callable, sql: string, ...params: Param[]): Promise<Rows> {
  return JSON.parse(await queryText(on, sql, params)) as Rows;
}

export async function execute(on: Callable, sql: string, ...params: Param[]): Promise<unknown> {
  const { result, payload } = await on.call(sqlCall('execute', sql, params));
  expect(payload).to.equal(undefined);
  return result;
}

/** The JSON text of the only value in the only row. */
export async function valueText(on: Callable, sql: string, ...params: Param[]): Promise<string> {
  const text = await queryText(on, sql, params);
  const found =
    /^\{"columns":\["[^"]*"\],"rows":\[\[([\s\S]*)\]\],"rows_affected":\d+,"last_insert_id":\w+\}$/.exec(
      text,
    );
  expect(found, text).to.not.equal(null);
  JSON.parse(text);
  return found?.[1] ?? '';
}
