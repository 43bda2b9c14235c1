/** A schema as a tree: what is within is shown when it is opened, so circles have no end and do no harm. */
import { useState } from 'preact/hooks';
import { type Json, listOf, objectOf, resolved, textOf } from './document.js';
import { Prose } from './prose.js';

interface SchemaProps {
  readonly document: Json;
  readonly schema: unknown;
}

interface NodeProps extends SchemaProps {
  readonly name: string;
  readonly isRequired?: boolean;
  readonly isOpen?: boolean;
}

/** The members of a schema; of one without members, what it is. */
export function SchemaTree({ document, schema }: SchemaProps) {
  const children = childrenOf(document, schema);
  if (children.length === 0) return <p>{kindOf(document, schema)}</p>;
  return (
    <ul class="schema">
      {children.map((child, at) => (
        <Node key={at} document={document} {...child} />
      ))}
    </ul>
  );
}

/** The schema of a body: of a list, that it is one, too. */
export function BodySchema({ document, schema }: SchemaProps) {
  const isList = [objectOf(resolved(document, schema))['type']].flat().includes('array');
  return (
    <>
      {isList && <span class="muted small">A list, each with</span>}
      <SchemaTree document={document} schema={schema} />
    </>
  );
}

function Node({ document, name, schema, isRequired, isOpen = false }: NodeProps) {
  const [isShown, setShown] = useState(isOpen);
  const one = objectOf(resolved(document, schema));
  const isParent = childrenOf(document, schema).length > 0;
  const line = (
    <>
      {name !== '' && <code class="name">{name}</code>}{' '}
      <span class="muted small">
        {kindOf(document, schema)}
        {isRequired && <strong>, required</strong>}
      </span>
      {textOf(one['description']) !== '' && (
        <span class="small description">
          <Prose text={textOf(one['description'])} />
        </span>
      )}
    </>
  );
  if (!isParent) return <li class="leaf">{line}</li>;
  return (
    <li>
      <details open={isShown} onToggle={({ currentTarget }) => setShown(currentTarget.open)}>
        <summary>{line}</summary>
        {isShown && <SchemaTree document={document} schema={schema} />}
      </details>
    </li>
  );
}

type Child = Omit<NodeProps, 'document'>;

function childrenOf(document: Json, schema: unknown): Child[] {
  const one = objectOf(resolved(document, schema));
  const required = listOf(one['required']);
  const members = Object.entries(objectOf(one['properties'])).map(([name, member]) => ({
    ...{ name, schema: member, isRequired: required.includes(name) },
  }));
  const parts = listOf(one['allOf']).flatMap((part) => childrenOf(document, part));
  const alternatives = [...listOf(one['oneOf']), ...listOf(one['anyOf'])]
    .filter((alternative) => childrenOf(document, alternative).length > 0)
    .map((alternative, at) => ({
      name: titleOf(document, alternative) || `one of them: ${at + 1}`,
      schema: alternative,
    }));
  const items = [one['type']].flat().includes('array') ? itemsOf(document, one['items']) : [];
  const others = objectOf(one['additionalProperties']);
  const any = Object.keys(others).length > 0 ? [{ name: 'any other name', schema: others }] : [];
  return [...members, ...parts, ...alternatives, ...items, ...any];
}

/** Those of lists of objects are shown at once. */
function itemsOf(document: Json, items: unknown): Child[] {
  const inner = childrenOf(document, items);
  return inner.length > 0 ? inner : [];
}

function titleOf(document: Json, schema: unknown): string {
  const reference = textOf(objectOf(schema)['$ref']);
  return textOf(objectOf(resolved(document, schema))['title']) || (reference.split('/').at(-1) ?? '');
}

const LIMITS: readonly (readonly [string, string])[] = [
  ['minimum', 'from'],
  ['maximum', 'to'],
  ['minLength', 'at least'],
  ['maxLength', 'at most'],
  ['pattern', 'like'],
];
const MOST_VALUES = 12;

/** What a schema is, in a few words. */
export function kindOf(document: Json, schema: unknown): string {
  const one = objectOf(resolved(document, schema));
  const types = [one['type']].flat().filter((type) => typeof type === 'string');
  if (types.includes('array')) return `list of ${kindOf(document, one['items']) || 'anything'}`;
  const values = listOf(one['enum']);
  const alternatives = [...listOf(one['oneOf']), ...listOf(one['anyOf'])];
  const title = titleOf(document, schema);
  const words =
    values.length > 0
      ? valuesText(values)
      : one['const'] !== undefined
        ? JSON.stringify(one['const'])
        : types.length > 0
          ? types.join(' or ')
          : alternatives.length > 0
            ? [...new Set(alternatives.map((each) => kindOf(document, each)))].join(' or ')
            : 'anything';
  const limits = LIMITS.flatMap(([name, word]) =>
    one[name] === undefined || isSaid(name, one) ? [] : [`${word} ${String(one[name])}`],
  );
  const fallback = one['default'] === undefined ? [] : [`default ${JSON.stringify(one['default'])}`];
  const format = textOf(one['format']);
  const name = title !== '' && types.includes('object') ? `${title}` : words;
  return [name, ...(format === '' ? [] : [format]), ...limits, ...fallback].join(', ');
}

/** Formats have names for their patterns. */
function isSaid(limit: string, { format }: Json): boolean {
  return limit === 'pattern' && textOf(format) !== '';
}

function valuesText(values: readonly unknown[]): string {
  const shown = values.slice(0, MOST_VALUES).map((value) => JSON.stringify(value));
  return shown.join(' | ') + (values.length > MOST_VALUES ? ` | … ${values.length} in all` : '');
}
