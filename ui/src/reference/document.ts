/** An OpenAPI document as this page reads it. It comes from anybody: nothing in it is sure to be there. */

export type Json = Readonly<Record<string, unknown>>;

export interface Parameter {
  readonly name: string;
  readonly place: string;
  readonly isRequired: boolean;
  readonly description: string;
  readonly schema: unknown;
}

/** A body, of a request or an answer. */
export interface Content {
  readonly mediaType: string;
  readonly schema: unknown;
  readonly example: unknown;
}

export interface Answer {
  readonly status: string;
  readonly description: string;
  readonly contents: readonly Content[];
}

export interface Operation {
  /** Its id in the document; also in the address. */
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly tag: string;
  readonly summary: string;
  readonly description: string;
  readonly isDeprecated: boolean;
  readonly parameters: readonly Parameter[];
  readonly bodies: readonly Content[];
  readonly isBodyRequired: boolean;
  readonly answers: readonly Answer[];
}

const METHODS = ['get', 'post', 'put', 'delete', 'patch', 'head', 'options', 'trace'];

/** The operations of a document, in its order. */
export function operationsOf(document: Json): Operation[] {
  return Object.entries(objectOf(document['paths'])).flatMap(([path, item]) => {
    const shared = objectOf(resolved(document, item));
    return METHODS.flatMap((method) =>
      shared[method] === undefined
        ? []
        : [operationOf(document, path, method, objectOf(shared[method]), shared)],
    );
  });
}

function operationOf(document: Json, path: string, method: string, operation: Json, shared: Json): Operation {
  const body = objectOf(resolved(document, operation['requestBody']));
  const [tag] = listOf(operation['tags']);
  return {
    id: textOf(operation['operationId']) || `${method} ${path}`,
    method: method.toUpperCase(),
    path,
    tag: textOf(tag) || 'Operations',
    summary: textOf(operation['summary']),
    description: textOf(operation['description']),
    isDeprecated: operation['deprecated'] === true,
    parameters: parametersOf(document, [...listOf(shared['parameters']), ...listOf(operation['parameters'])]),
    bodies: contentsOf(body['content']),
    isBodyRequired: body['required'] === true,
    answers: Object.entries(objectOf(operation['responses'])).map(([status, answer]) => {
      const { description, content } = objectOf(resolved(document, answer));
      return { status, description: textOf(description), contents: contentsOf(content) };
    }),
  };
}

/** Those of an operation stand for those of its path. */
function parametersOf(document: Json, given: readonly unknown[]): Parameter[] {
  const byName = new Map<string, Parameter>();
  for (const one of given) {
    const { name, in: place, required, description, schema, content } = objectOf(resolved(document, one));
    const [first] = contentsOf(content);
    byName.set(`${place} ${name}`, {
      name: textOf(name),
      place: textOf(place),
      isRequired: required === true,
      description: textOf(description),
      schema: schema ?? first?.schema,
    });
  }
  return [...byName.values()];
}

function contentsOf(content: unknown): Content[] {
  return Object.entries(objectOf(content)).map(([mediaType, media]) => {
    const { schema, example, examples } = objectOf(media);
    const [first] = Object.values(objectOf(examples));
    return { mediaType, schema, example: example ?? objectOf(first)['value'] };
  });
}

/** References may lead to references, and in circles. */
const MOST_STEPS = 20;

/** What a `$ref` of the document stands for; anything else as it is. */
export function resolved(document: Json, value: unknown): unknown {
  let current = value;
  for (let step = 0; step < MOST_STEPS; step++) {
    const { $ref: reference } = objectOf(current);
    if (typeof reference !== 'string' || !reference.startsWith('#/')) return current;
    current = reference
      .slice(2)
      .split('/')
      .map((part) => decoded(part).replaceAll('~1', '/').replaceAll('~0', '~'))
      .reduce<unknown>((inner, part) => objectOf(inner)[part], document);
  }
  return undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The path that is before those of the operations. */
export function basePathOf(document: Json): string {
  const [server] = listOf(document['servers']);
  const url = textOf(objectOf(server)['url']);
  if (!URL.canParse(url, 'http://host')) return '';
  return new URL(url, 'http://host').pathname.replace(/\/$/, '');
}

export function objectOf(value: unknown): Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {};
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
