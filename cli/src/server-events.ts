/** Server-sent events (https://html.spec.whatwg.org/#server-sent-events). */

export interface ServerEvent {
  /** Empty for one that only has an id. */
  readonly name: string;
  readonly id: string | undefined;
  /** Parsed JSON; undefined when there is none. */
  readonly data: unknown;
}

export async function* serverEvents(
  body: AsyncIterable<Uint8Array>,
): AsyncGenerator<ServerEvent, void, void> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of body) {
    rest += decoder.decode(chunk, { stream: true });
    const blocks = rest.split(/\r?\n\r?\n/);
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const event = eventOf(block);
      if (event) yield event;
    }
  }
}

/** Undefined for comments and delays. */
function eventOf(block: string): ServerEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) continue;
    fields.set(name, name === 'data' && fields.has('data') ? `${fields.get('data')}\n${value}` : value);
  }
  const [id, data] = [fields.get('id'), fields.get('data')];
  if (id === undefined && data === undefined) return undefined;
  return { name: fields.get('event') ?? '', id, data: data === undefined ? undefined : JSON.parse(data) };
}
