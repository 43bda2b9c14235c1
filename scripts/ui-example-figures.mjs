/**
 * Figures of the hours before, for the pictures of docs/ui: what gateways would have written of traffic that nobody can
 * send now. They are the same with every run, but for their times.
 */
import { openDatabase } from '../dist/src/store/database.js';
import { ALL_ENDPOINTS, saveFigures } from '../dist/src/store/figures.js';

const MINUTES = 26 * 60;
const MINUTE_MS = 60_000;
/** Shares of the buckets of durations: most requests take a few milliseconds. */
const SHARES = [0.28, 0.34, 0.2, 0.1, 0.05, 0.02, 0.01];
const NODE = '00000000-0000-4000-8000-000000000001';

/**
 * @param endpoints with `perMinute`, requests of an average minute, and `errors`, the share of those that fail
 */
export async function addPastFigures(databaseUrl, endpoints) {
  const database = openDatabase(databaseUrl, (error) => {
    throw error;
  });
  const now = Math.floor(Date.now() / MINUTE_MS);
  try {
    const minutes = Array.from({ length: MINUTES }, (_, ago) => now - ago - 1);
    for (const minute of minutes) {
      const rows = endpoints.map((endpoint, place) => figuresOf(endpoint, minute, now, place));
      await saveFigures(database, NODE, [...rows, sumOf(rows)]);
    }
  } finally {
    await database.close();
  }
}

function figuresOf({ id, perMinute, errors }, minute, now, place) {
  const ago = now - minute;
  const requests = Math.round(perMinute * waveAt(ago, place));
  const failed = Math.round(requests * errors * (ago % 47 < 9 ? 6 : 1));
  const missing = Math.round(requests * 0.03 * (1 + noise(ago, place + 20)));
  return {
    ...{ endpoint_id: id, at: minute * MINUTE_MS, version: 1 },
    ...{ status_2xx: Math.max(0, requests - failed - missing), status_3xx: 0, status_4xx: missing },
    ...{ status_5xx: failed, status_other: 0, restarts: 0, cpu_seconds: requests * 0.002 },
    ...{
      in_flight: 1 + Math.round(requests / 30),
      memory_bytes: 9_000_000 + place * 1_500_000 + (ago % 90) * 12_000,
    },
    ...durations(requests, place),
  };
}

/** More by day than by night, and a little different every minute. */
function waveAt(ago, place) {
  return 1 + 0.45 * Math.sin((ago / 1440) * 2 * Math.PI + place) + 0.3 * (noise(ago, place) - 0.5);
}

/** A number from 0 to 1, the same for the same numbers. */
function noise(one, other) {
  const value = Math.sin(one * 12.9898 + other * 78.233) * 43_758.5453;
  return value - Math.floor(value);
}

function durations(requests, place) {
  const buckets = SHARES.map((_, at) => 182 + place * 5 + at * 10);
  return { buckets, counts: SHARES.map((share) => Math.round(requests * share)) };
}

function sumOf(rows) {
  const sum = { ...rows[0], endpoint_id: ALL_ENDPOINTS, version: 0, buckets: [], counts: [] };
  for (const name of Object.keys(sum))
    if (typeof sum[name] === 'number' && name !== 'at' && name !== 'version')
      sum[name] = rows.reduce((total, row) => total + row[name], 0);
  return { ...sum, buckets: rows.flatMap((row) => row.buckets), counts: rows.flatMap((row) => row.counts) };
}
