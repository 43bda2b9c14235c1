/** The form of one policy. */
import { useMemo, useState } from 'preact/hooks';
import { call, get } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { Check, SelectField, TextArea } from '../base/controls.js';
import { headerProblem } from '../base/header-lines.js';
import { Loaded } from '../base/notices.js';
import { invalidAt } from '../base/problems.js';
import type { Field } from '../fields/schema.js';
import { SchemaField } from '../fields/schema-field.js';
import type { Owner } from './owner.js';
import type { OwnPolicies } from './policies-section.js';
import {
  type FieldTexts,
  fitsForm,
  type PolicyForm,
  textsOf,
  usePolicyForm,
  withTexts,
} from './policy-form.js';
import type { PolicyName } from './policy-hints.js';
import { SaveForm } from './save-form.js';
import { useForm } from './use-form.js';

type Mode = 'set' | 'off' | 'unset';

interface PolicyEditorProps {
  readonly owner: Owner;
  readonly name: PolicyName;
  readonly own: OwnPolicies;
}

interface Draft {
  /** Undefined: as it is saved. */
  readonly mode: Mode | undefined;
  /** Counts before the fields. */
  readonly json: TypedJson | undefined;
  /** The texts of the fields by their paths, each on its own: others may change other fields meanwhile. */
  readonly [at: `at ${string}`]: string;
}

interface TypedJson {
  readonly text: string;
  /** What was saved when typing began. */
  readonly before: string;
}

export function PolicyEditor({ name, ...props }: PolicyEditorProps) {
  const result = usePolicyForm(name);
  return <Loaded result={result}>{(policy) => <Editor policy={policy} {...props} />}</Loaded>;
}

interface EditorProps extends Omit<PolicyEditorProps, 'name'> {
  readonly policy: PolicyForm;
}

function Editor({ owner, policy, own }: EditorProps) {
  const { name } = policy;
  const saved = own[name];
  const form = useForm<Draft>(`typed policy ${owner.id} ${name}`, useSaved(policy, own));
  const { json } = form.changes;
  const typed = typedTexts(policy, form.changes);
  const isTyped = json !== undefined || Object.keys(typed).length > 0;
  // What is typed into a policy that somebody else takes away meanwhile is still to be set.
  const mode = form.changes.mode ?? (isTyped ? 'set' : modeOf(saved));
  const [wantsJson, setWantsJson] = useState(json !== undefined);
  const isShowable = fitsForm(policy, saved);
  const isJson = wantsJson || !isShowable;
  const text = json?.text ?? pretty(withTexts(policy, saved, typed));
  const place = `body.policies.${name}`;
  const fieldPlace = ({ path }: Field) => (path === '' ? place : `${place}.${path}`);
  const wrong = wrongField(policy, typed);
  const madeOf = (current: unknown) => {
    if (json) return parse(json.text, place);
    if (wrong) throw invalidAt(fieldPlace(wrong.field), wrong.problem);
    const value = withTyped(policy, current, typed, place);
    // Without a value it would be taken away.
    if (value === undefined) throw invalidAt(place, 'must be given, or the policy is not set');
    return value;
  };
  const save = async () => {
    const params = { id: owner.id };
    // What others have changed meanwhile stays.
    const current = ((await get(`GET /api/${owner.kind}/{id}`, { params })).policies ?? {}) as OwnPolicies;
    const policies = changed(current, name, mode, mode === 'set' ? madeOf(current[name]) : null);
    // What is typed may be anything: the API says what it does not accept.
    const body = { policies } as object;
    const answer = await call(`PUT /api/${owner.kind}/{id}`, { params, body });
    invalidate(`/api/${owner.kind}/${owner.id}`, '/api/endpoints');
    return answer;
  };
  const toFields = () => {
    if (!json) return;
    const texts = textsOf(policy, tryParse(json.text));
    for (const { path } of policy.fields) form.set(`at ${path}`, texts[path] ?? '');
    form.set('json', undefined);
  };
  const whyForm = wrong && `Not yet: a line in “${wrong.field.label}” is wrong.`;
  const why = isJson ? whyJson(policy, isShowable, json) : whyForm;
  return (
    <SaveForm form={form} places={isJson ? [place] : policy.fields.map(fieldPlace)} mayEdit onSave={save}>
      {(problem) => (
        <>
          <SelectField
            label="Here"
            value={mode}
            options={[
              { value: 'set', label: 'Set' },
              {
                value: 'off',
                label:
                  owner.kind === 'domains' ? 'Switched off' : 'Switched off, whatever is set farther away',
              },
              {
                value: 'unset',
                label: owner.kind === 'domains' ? 'Not set' : 'Not set: what is set farther away counts',
              },
            ]}
            onChange={(value) => form.set('mode', value === modeOf(saved) && !isTyped ? undefined : value)}
          />
          {mode === 'set' && policy.fields.length > 0 && (
            <Check
              label="Edit as JSON"
              isChecked={isJson}
              isDisabled={why !== undefined}
              hint={why}
              onChange={(isJson) => {
                if (!isJson) toFields();
                setWantsJson(isJson);
              }}
            />
          )}
          {mode === 'set' && isJson && json && json.before !== pretty(saved) && (
            <div class="notice warn" role="status">
              <span>This policy has been changed since you began: what you save replaces that.</span>
            </div>
          )}
          {mode === 'set' && isJson && (
            <TextArea
              label="Policy"
              hint="JSON; docs/POLICIES.md describes its members."
              rows={Math.min(24, Math.max(6, text.split('\n').length))}
              value={text}
              problem={problem(place)}
              onInput={(value) => form.set('json', { text: value, before: json?.before ?? pretty(saved) })}
            />
          )}
          {mode === 'set' &&
            !isJson &&
            policy.fields.map((field) => (
              <SchemaField
                key={field.path}
                field={field}
                value={form.values[`at ${field.path}`] ?? ''}
                problem={lineNumbered(problem(fieldPlace(field)))}
                onChange={(value) => form.set(`at ${field.path}`, value as string)}
              />
            ))}
        </>
      )}
    </SaveForm>
  );
}

function useSaved(policy: PolicyForm, own: OwnPolicies): Draft {
  return useMemo(() => {
    const texts = Object.entries(textsOf(policy, own[policy.name]));
    const fields = Object.fromEntries(texts.map(([path, text]) => [`at ${path}`, text]));
    return { ...fields, mode: undefined, json: undefined };
  }, [own, policy]);
}

function modeOf(policy: unknown): Mode {
  if (policy === undefined) return 'unset';
  return policy === null ? 'off' : 'set';
}

/** Texts of the fields that somebody has typed into, by the paths of these. */
function typedTexts({ fields }: PolicyForm, changes: Partial<Draft>): FieldTexts {
  const typed = fields.flatMap(({ path }): [string, string][] => {
    const text = changes[`at ${path}`];
    return text === undefined ? [] : [[path, text]];
  });
  return Object.fromEntries(typed);
}

/** The first field whose text is not what it would become. */
function wrongField({ fields }: PolicyForm, typed: FieldTexts) {
  for (const field of fields) {
    const problem = field.kind === 'headers' ? headerProblem(typed[field.path] ?? '') : undefined;
    if (problem !== undefined) return { field, problem };
  }
  return undefined;
}

/** Why it can be edited as JSON only. */
function whyJson(policy: PolicyForm, isShowable: boolean, json: TypedJson | undefined): string | undefined {
  const typed = json && tryParse(json.text);
  if (json && typed === undefined) return 'It is not JSON yet.';
  return isShowable && fitsForm(policy, typed) ? undefined : 'It has more than the form can show.';
}

/** @throws ApiError that says what of the typed texts has no place in it */
function withTyped(policy: PolicyForm, saved: unknown, typed: FieldTexts, place: string): unknown {
  const left = policy.fields.flatMap(({ path, label }) => (typed[path] ? [`${label}: ${typed[path]}`] : []));
  if (Array.isArray(saved) && left.length > 0)
    throw invalidAt(
      place,
      `somebody else has made several rules of it; what you have typed (${left.join(', ')}) is in none of them`,
    );
  return withTexts(policy, saved, typed);
}

/** All policies that are set here, with this one changed; null when there is none. */
function changed(own: OwnPolicies, name: PolicyName, mode: Mode, value: unknown): OwnPolicies | null {
  const { [name]: _, ...others } = own;
  const policies = mode === 'unset' ? others : { ...others, [name]: value };
  return Object.keys(policies).length === 0 ? null : policies;
}

function pretty(value: unknown): string {
  return value === undefined ? '' : JSON.stringify(value, null, 2);
}

function tryParse(json: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch {
    return undefined;
  }
}

/** @throws ApiError that says at the field what is no JSON */
function parse(json: string, place: string): unknown {
  try {
    return JSON.parse(json) as unknown;
  } catch (thrown) {
    throw invalidAt(place, `this is not JSON (${thrown instanceof Error ? thrown.message : thrown})`);
  }
}

/** Items of a list are lines of the field: `0: must be …` is about the first. */
function lineNumbered(problem: string | undefined): string | undefined {
  return problem?.replace(/^(\d+): /, (_, index: string) => `Line ${Number(index) + 1}: `);
}
