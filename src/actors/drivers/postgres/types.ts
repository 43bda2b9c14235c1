/** Converts values of PostgreSQL from text format to JSON; the table is in `docs/SERVICE-PROTOCOL.md`. */
import type pg from 'pg';

/** Converts a value from text format to JSON. */
export type Encoder = (text: string) => string;

/** For types whose text needs no escaping. */
const quoted: Encoder = (text) => `"${text}"`;
const escaped: Encoder = (text) => JSON.stringify(text);
const asIs: Encoder = (text) => text;
const boolean: Encoder = (text) => (text === 't' ? 'true' : 'false');
/** Quotes NaN, Infinity and -Infinity. */
const float: Encoder = (text) => (/^-?\d/.test(text) ? text : `"${text}"`);
/** `2026-01-31 23:59:59.5`; also `infinity`, and `... BC`. */
const timestamp: Encoder = (text) => `"${text.replace(' ', 'T')}"`;
/** The session is in UTC, so the offset is always this. */
const timestamptz: Encoder = (text) => `"${text.replace(' ', 'T').replace(/\+00(?= BC$|$)/, 'Z')}"`;
/** `\x` and hexadecimal digits. */
const bytea: Encoder = (text) => `"${Buffer.from(text.slice(2), 'hex').toString('base64')}"`;

/** Fixed oids of base types and their arrays. */
const BUILT_IN: readonly (readonly [encode: Encoder, types: readonly number[], arrays: readonly number[]])[] =
  [
    [boolean, [16], [1000]],
    [bytea, [17], [1001]],
    // int8, int2, int4, oid
    [asIs, [20, 21, 23, 26], [1016, 1005, 1007, 1028]],
    [float, [700, 701], [1021, 1022]],
    // numeric, date, time, timetz, interval, uuid
    [quoted, [1700, 1082, 1083, 1266, 1186, 2950], [1231, 1182, 1183, 1270, 1187, 2951]],
    [timestamp, [1114], [1115]],
    [timestamptz, [1184], [1185]],
    // json, jsonb
    [asIs, [114, 3802], [199, 3807]],
    // "char", name, text, bpchar, varchar, unknown, cidr, macaddr, inet
    [escaped, [18, 19, 25, 1042, 1043, 705, 650, 829, 869], [1002, 1003, 1009, 1014, 1015, 651, 1040, 1041]],
  ];

interface CatalogRow {
  readonly oid: number;
  /** Oid of the elements, with domains resolved; null when it is not an array. */
  readonly element: number | null;
  readonly delimiter: string;
}

const CATALOG = `
  SELECT t.oid, CASE WHEN e.typbasetype <> 0 THEN e.typbasetype ELSE e.oid END AS element,
         coalesce(e.typdelim, ',')::text AS delimiter
  FROM pg_catalog.pg_type t
  LEFT JOIN pg_catalog.pg_type e ON t.typcategory = 'A' AND e.oid = t.typelem
  WHERE t.oid = ANY ($1::oid[])`;

/** The encoders of one database. Its own types are looked up in the catalog on first use. */
export class PostgresTypes {
  readonly #encoders = new Map<number, Encoder>();

  constructor() {
    for (const [encode, types, arrays] of BUILT_IN) {
      for (const oid of types) this.#encoders.set(oid, encode);
      for (const oid of arrays) this.#encoders.set(oid, arrayEncoder(encode, ','));
    }
  }

  /** @returns undefined for an unknown type, which `learn` looks up */
  encoder(oid: number): Encoder | undefined {
    return this.#encoders.get(oid);
  }

  /** Looks types up in the catalog, in a session without a failed transaction. */
  async learn(client: pg.ClientBase, oids: readonly number[]): Promise<void> {
    const { rows } = await client.query<CatalogRow>(CATALOG, [oids]);
    const found = new Map(rows.map((row) => [row.oid, row]));
    for (const oid of oids) {
      const row = found.get(oid);
      const element = row?.element ?? null;
      const encode =
        element === null ? escaped : arrayEncoder(this.#encoders.get(element) ?? escaped, row?.delimiter);
      this.#encoders.set(oid, encode);
    }
  }
}

/** `{1,NULL,"a b",{...}}`, with a prefix for bounds that do not begin at 1: `[0:1]={1,2}`. */
function arrayEncoder(element: Encoder, delimiter = ','): Encoder {
  const end = new RegExp(`["{}${delimiter}]`, 'g');
  return (text) => {
    let at = text.indexOf('{');
    let json = '';
    while (at < text.length) {
      const character = text.charAt(at);
      if (character === '{' || character === '}') {
        json += character === '{' ? '[' : ']';
        at++;
      } else if (character === delimiter) {
        json += ',';
        at++;
      } else if (character === '"') {
        const close = closingQuote(text, at);
        json += element(text.slice(at + 1, close).replace(/\\(.)/gs, '$1'));
        at = close + 1;
      } else {
        end.lastIndex = at;
        const close = end.exec(text)?.index ?? text.length;
        const value = text.slice(at, close);
        json += value === 'NULL' ? 'null' : element(value);
        at = close;
      }
    }
    return json;
  };
}

function closingQuote(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text.charAt(at) !== '"') at += text.charAt(at) === '\\' ? 2 : 1;
  return at;
}
