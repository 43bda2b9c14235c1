/** The result of a query, written as JSON text row by row, without objects for rows. */
import { MAX_BODY_BYTES } from '../../wire/codec.js';
import { ServiceError } from '../service-error.js';

/**
 * Received bytes after which the result is certainly too large: JSON is never more compact than this. It also bounds
 * a single row, which the libraries buffer until it is complete.
 */
export const MAX_RECEIVED_BYTES = 2.5 * MAX_BODY_BYTES;

export function resultTooLarge(): ServiceError {
  return new ServiceError(
    'invalid',
    `the result is larger than ${MAX_BODY_BYTES / 1024 ** 2} MiB; select fewer rows or columns, or read it in parts (LIMIT)`,
  );
}

export class ResultText {
  #text: string;
  #rows = 0;

  constructor(columns: readonly string[]) {
    this.#text = `{"columns":${JSON.stringify(columns)},"rows":[`;
  }

  /**
   * Adds a row.
   * @param values JSON texts with commas between them
   * @returns false when the result has become too large
   */
  addRow(values: string): boolean {
    this.#text += this.#rows === 0 ? `[${values}]` : `,[${values}]`;
    this.#rows++;
    return this.#text.length <= MAX_BODY_BYTES;
  }

  /**
   * The complete text.
   * @param lastInsertId as JSON
   * @throws ServiceError `invalid` when it is too large
   */
  finish(rowsAffected: number, lastInsertId = 'null'): string {
    this.#text += `],"rows_affected":${rowsAffected},"last_insert_id":${lastInsertId}}`;
    // A UTF-16 unit takes three bytes at most.
    if (this.#text.length * 3 > MAX_BODY_BYTES && Buffer.byteLength(this.#text) > MAX_BODY_BYTES)
      throw resultTooLarge();
    return this.#text;
  }
}
