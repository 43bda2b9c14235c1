/**
 * The digest of known rows and their versions, kept up to date with each change: compared with that of the database, it
 * tells whether anything has changed without reading all rows. Changes that it does not show are as rare as equal
 * random numbers.
 */
import { addDigest, digestOf, type RowsDigest } from '../store/rows-digest.js';

export class KnownRowsDigest {
  #count = 0;
  #sum = 0;

  add(id: string, version: number): void {
    this.#count++;
    this.#sum = addDigest(this.#sum, digestOf(id, version));
  }

  remove(id: string, version: number): void {
    this.#count--;
    this.#sum = addDigest(this.#sum, -digestOf(id, version));
  }

  equals({ count, sum }: RowsDigest): boolean {
    return count === this.#count && sum === this.#sum;
  }
}
