/** Looks for secrets where none may be. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { Redis } from 'ioredis';
import pg from 'pg';
import { descendantsOf } from './process-state.js';
import type { Stack } from './processes.js';

/** In every secret that is looked for, and nowhere else. Letters and digits stay what they are in URLs and JSON. */
const MARK = 'Zq7secret';
/** Around it in every secret: characters that escaping changes. Redaction has to find secrets in escaped form too. */
const ESCAPED = '"\\%/+? &ü:@';

/**
 * The mark as it may stand in a text. In base64 it depends on how many bytes are before it, as with `\0user\0password`
 * of AUTH PLAIN.
 */
const FORMS: readonly string[] = [
  MARK,
  Buffer.from(MARK).toString('hex'),
  ...[0, 1, 2].flatMap((before) => [base64Within('base64', before), base64Within('base64url', before)]),
];

/** The characters of base64 that hold bits of the mark only. */
function base64Within(encoding: 'base64' | 'base64url', before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), Buffer.from(MARK)]).toString(encoding);
  return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + MARK.length) * 8) / 6));
}

/** A secret to look for. @param name tells secrets apart */
export function secret(name: string): string {
  return `${ESCAPED}${MARK}${ESCAPED}${name}`;
}

/** Fails when a secret is in a text, in any form. */
export function expectNone(where: string, text: string): void {
  expect(text.length, `nothing was read of ${where}`).to.be.greaterThan(0);
  for (const form of FORMS) {
    const at = text.indexOf(form);
    const found = at === -1 ? '' : text.slice(Math.max(0, at - 200), at + 100);
    expect(found, `a secret is in ${where}`).to.equal('');
  }
}

/** What the processes of a stack have printed, and the arguments of all processes below them. */
export async function expectNoneInProcesses(stack: Stack): Promise<void> {
  for (const [name, process] of stack.processes) {
    expectNone(`the output of ${name}`, process.printed());
    for (const { pid } of [process, ...descendantsOf(process.pid)]) {
      // One that has ended has none.
      const text = await readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '');
      if (text !== '') expectNone(`the arguments of ${name}`, text);
    }
  }
}

/** All files below a folder, executables too. @returns how many there are */
export async function expectNoneInFiles(folder: string): Promise<number> {
  const entries = await readdir(folder, { withFileTypes: true, recursive: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
  for (const file of files) {
    const text = await readFile(file, 'latin1');
    if (text !== '') expectNone(file, text);
  }
  return files.length;
}

/** All that a Redis has, as text. */
export async function everythingInRedis(url: string): Promise<string> {
  const redis = new Redis(url);
  try {
    const texts = [];
    for (const key of await redis.keys('*')) texts.push(key, JSON.stringify(await contentOf(redis, key)));
    return texts.join('\n');
  } finally {
    redis.disconnect();
  }
}

async function contentOf(redis: Redis, key: string): Promise<unknown> {
  const type = await redis.type(key);
  switch (type) {
    case 'string':
      return redis.get(key);
    case 'hash':
      return redis.hgetall(key);
    case 'list':
      return redis.lrange(key, 0, -1);
    case 'set':
      return redis.smembers(key);
    case 'zset':
      return redis.zrange(key, 0, -1);
    case 'stream':
      return redis.xrange(key, '-', '+');
    default:
      // It has ended meanwhile.
      if (type === 'none') return null;
      throw new Error(`the key ${key} has the type ${type}, which is not read here`);
  }
}

/** All rows of all tables, those of the queues included. */
export async function everythingIn(databaseUrl: string): Promise<string> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  try {
    const { rows: tables } = await client.query<{ name: string }>(
      `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
       WHERE schemaname NOT IN ('pg_catalog', 'information_schema')`,
    );
    const texts: string[] = [];
    for (const { name } of tables) {
      const { rows } = await client.query<{ text: string }>(
        `SELECT to_jsonb(t)::text AS text FROM ${name} AS t`,
      );
      texts.push(...rows.map(({ text }) => text));
    }
    return texts.join('\n');
  } finally {
    await client.end();
  }
}
