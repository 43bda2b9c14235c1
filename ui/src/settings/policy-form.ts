/**
 * The forms of the policies: fields for what a form can show whole. What has more to it, such as tokens of an issuer or
 * JSON Schemas, is edited as JSON: a form that hides a part of a policy would lie.
 */
import { useMemo } from 'preact/hooks';
import { type Field, type FieldKind, fieldsOf, type Schema, useSchema } from '../fields/schema.js';
import { sentOf, typedOf } from '../fields/values.js';
import { POLICY_HINTS, type PolicyName } from './policy-hints.js';

export interface PolicyForm {
  readonly name: PolicyName;
  /** What the policy is when no field has a value. */
  readonly base: unknown;
  /** None: it is edited as JSON. */
  readonly fields: readonly Field[];
}

/** The form of a policy, by the schema of what a domain has; undefined until it is read. */
export function usePolicyForm(name: PolicyName) {
  const result = useSchema('Domain');
  const schema = result.data?.properties?.['policies']?.properties?.[name];
  return { ...result, data: useMemo(() => schema && policyForm(name, schema), [name, schema]) };
}

function policyForm(name: PolicyName, schema: Schema): PolicyForm {
  const { asJson = [], base = {}, fields: byPath = {} } = POLICY_HINTS[name];
  const places = Object.keys(byPath);
  const order = ({ path }: Field) => (path in byPath ? places.indexOf(path) : places.length);
  const isField = ({ path }: Field) => asJson !== true && !asJson.includes(path.split('.', 1)[0] ?? '');
  const fields = fieldsOf(schema, byPath)
    .filter(isField)
    .map(asText)
    .sort((a, b) => order(a) - order(b));
  return {
    name,
    base: fields.length > 0 && schema.properties ? base : undefined,
    fields,
  };
}

/** A draft has texts only. The API, not the browser, says what is missing or no number, at its field. */
const TYPED_AS: Partial<Record<FieldKind, FieldKind>> = {
  number: 'text',
  area: 'text',
  flag: 'check',
  choices: 'list',
};

function asText(field: Field): Field {
  return { ...field, kind: TYPED_AS[field.kind] ?? field.kind, isRequired: false };
}

/** The texts of the fields, by their paths. */
export type FieldTexts = Readonly<Record<string, string>>;

export function textsOf({ fields }: PolicyForm, policy: unknown): FieldTexts {
  const texts = fields.map((field) => [field.path, typedOf(field, valueAt(policy, field.path)) as string]);
  return Object.fromEntries(texts) as FieldTexts;
}

/**
 * The policy with these texts, and all else as it is. Several rules stay as they are: fields are about one.
 * @param texts of some fields
 * @returns undefined where nothing is given and the policy is nothing without it
 */
export function withTexts({ fields, base }: PolicyForm, policy: unknown, texts: FieldTexts): unknown {
  if (Array.isArray(policy)) return policy;
  return fields.reduce<unknown>((made, field) => {
    const text = texts[field.path];
    return text === undefined ? made : withValue(made, field.path, sentOf(field, text), base);
  }, policy ?? base);
}

/** Whether the fields show all of it. */
export function fitsForm(form: PolicyForm, policy: unknown): boolean {
  if (form.fields.length === 0) return false;
  return policy == null || sorted(withTexts(form, undefined, textsOf(form, policy))) === sorted(policy);
}

/** What a policy has at the path of a field. */
export function valueAt(value: unknown, path: string): unknown {
  if (path === '') return value;
  return path.split('.').reduce<unknown>((at, name) => (isObject(at) ? at[name] : undefined), value);
}

/** What has nothing in it any more goes, unless the policy is nothing without it. */
function withValue(policy: unknown, path: string, value: unknown, base: unknown): unknown {
  if (path === '') return value;
  const [name = '', ...rest] = path.split('.');
  const object = isObject(policy) ? policy : {};
  if (value === undefined && object[name] === undefined) return object;
  const inBase = valueAt(base, name);
  const member = withValue(object[name], rest.join('.'), value, inBase);
  const isEmpty = isObject(member) && Object.keys(member).length === 0;
  if (member !== undefined && !(isEmpty && inBase === undefined)) return { ...object, [name]: member };
  const { [name]: _, ...others } = object;
  return others;
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A value as JSON, whatever the order of members. */
function sorted(value: unknown): string {
  return JSON.stringify(value, (_, one: unknown) =>
    isObject(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one,
  );
}
