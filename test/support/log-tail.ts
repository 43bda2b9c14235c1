/** A client of a live log. */

/** An event of it. */
export interface TailedEntry {
  /** What a client that reconnects sends. */
  readonly eventId: string;
  readonly entry: LogItem;
}

/** An entry, as the API shows it. */
export interface LogItem {
  readonly id: string;
  readonly at: string;
  readonly kind: 'output' | 'request';
  readonly level: string;
  readonly endpoint_id: string;
  readonly version: number | null;
  readonly request_id: string | null;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>> | null;
  readonly method: string | null;
  readonly route: string | null;
  readonly path: string | null;
  readonly status: number | null;
  readonly duration_ms: number | null;
  readonly bytes: number | null;
  readonly client_ip: string | null;
}

/** A connection that receives entries. */
export interface LogTail {
  /** All that have come so far. */
  readonly received: readonly TailedEntry[];
  /** The ids that have come, also those without an entry. */
  readonly ids: readonly string[];
  /** Resolves when it is over, whoever has ended it. */
  readonly ended: Promise<void>;
  /** Closes it; resolves when it is. */
  close(): Promise<void>;
}

/**
 * Connects; resolves when the server has begun to answer.
 * @param lastEventId of the connection before it
 * @param credential the header of who connects
 */
export async function tailLog(
  url: string,
  lastEventId?: string,
  credential: Readonly<Record<string, string>> = {},
): Promise<LogTail> {
  const received: TailedEntry[] = [];
  const ids: string[] = [];
  const closed = new AbortController();
  const response = await fetch(url, {
    headers: {
      ...credential,
      accept: 'text/event-stream',
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    },
    signal: closed.signal,
  });
  if (response.status !== 200 || !response.body)
    throw new Error(`The log answered ${response.status}: ${await response.text()}`);
  const reading = read(response.body, received, ids).catch(() => undefined);
  return {
    received,
    ids,
    ended: reading,
    close: async () => {
      closed.abort();
      await reading;
    },
  };
}

async function read(body: AsyncIterable<Uint8Array>, received: TailedEntry[], ids: string[]): Promise<void> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const bytes of body) {
    text += decoder.decode(bytes, { stream: true });
    const events = text.split('\n\n');
    text = events.pop() ?? '';
    for (const event of events) {
      const [, eventId] = /^id: (.*)$/m.exec(event) ?? [];
      const [, data] = /^data: (.*)$/m.exec(event) ?? [];
      if (eventId !== undefined) ids.push(eventId);
      if (eventId !== undefined && data !== undefined)
        received.push({ eventId, entry: JSON.parse(data) as LogItem });
    }
  }
}
