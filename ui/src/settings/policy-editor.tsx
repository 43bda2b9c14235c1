/** The form of one policy. */
import { useMemo, useState } from 'preact/hooks';
import { ApiError, call } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { Check, SelectField, TextArea, TextField } from '../base/controls.js';
import type { Owner } from './owner.js';
import type { OwnPolicies } from './policies-section.js';
import {
  type FieldTexts,
  fitsForm,
  POLICY_FORMS,
  type PolicyField,
  type PolicyName,
  policyOf,
  textsOf,
} from './policy-forms.js';
import { SaveForm } from './save-form.js';
import { useForm } from './use-form.js';

type Mode = 'set' | 'off' | 'unset';

interface PolicyEditorProps {
  readonly owner: Owner;
  readonly name: PolicyName;
  readonly own: OwnPolicies;
}

interface Draft {
  readonly mode: Mode;
  readonly texts: FieldTexts;
  readonly json: string;
}

export function PolicyEditor({ owner, name, own }: PolicyEditorProps) {
  const policy = POLICY_FORMS[name];
  const saved = own[name];
  const form = useForm<Draft>(`policy ${owner.id} ${name}`, useSaved(name, own));
  const { mode, texts, json } = form.values;
  const [isJson, setJson] = useState(() => !fitsForm(policy, saved) || form.changes.json !== undefined);
  const place = `body.policies.${name}`;
  const save = async () => {
    const params = { id: owner.id };
    const policies = changed(
      own,
      name,
      mode,
      mode === 'set' ? (isJson ? parse(json, place) : policyOf(policy, texts)) : null,
    );
    // What is typed may be anything: the API says what it does not accept.
    const body = { policies } as object;
    const answer = await call(`PUT /api/${owner.kind}/{id}`, { params, body });
    invalidate(`/api/${owner.kind}/${owner.id}`, '/api/endpoints');
    return answer;
  };
  const fieldPlace = ({ path }: PolicyField) => (path === '' ? place : `${place}.${path}`);
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
            onChange={(value) => form.set('mode', value)}
          />
          {mode === 'set' && policy.fields.length > 0 && (
            <Check
              label="Edit as JSON"
              isChecked={isJson}
              isDisabled={isJson && !fitsForm(policy, tryParse(json))}
              hint={
                isJson && !fitsForm(policy, tryParse(json))
                  ? 'It has more than the form can show.'
                  : undefined
              }
              onChange={(wanted) => {
                if (wanted) form.set('json', pretty(policyOf(policy, texts)));
                else form.set('texts', textsOf(policy, tryParse(json)));
                setJson(wanted);
              }}
            />
          )}
          {mode === 'set' && isJson && (
            <TextArea
              label="Policy"
              hint="JSON; docs/POLICIES.md describes its members."
              rows={Math.min(24, Math.max(6, json.split('\n').length))}
              value={json}
              problem={problem(place)}
              onInput={(value) => form.set('json', value)}
            />
          )}
          {mode === 'set' &&
            !isJson &&
            policy.fields.map((field) => (
              <OneField
                key={field.path}
                field={field}
                value={texts[field.path] ?? ''}
                problem={lineNumbered(problem(fieldPlace(field)))}
                onChange={(value) => form.set('texts', { ...texts, [field.path]: value })}
              />
            ))}
        </>
      )}
    </SaveForm>
  );
}

interface OneFieldProps {
  readonly field: PolicyField;
  readonly value: string;
  readonly problem: string | undefined;
  readonly onChange: (value: string) => void;
}

function OneField({ field: { kind, label, hint, options = [] }, value, problem, onChange }: OneFieldProps) {
  const shared = { label, hint, problem, value };
  if (kind === 'check')
    return (
      <Check
        label={label}
        isChecked={value === 'true'}
        onChange={(isChecked) => onChange(isChecked ? 'true' : '')}
      />
    );
  if (kind === 'choice') return <SelectField {...shared} options={options} onChange={onChange} />;
  if (kind === 'list' || kind === 'pairs')
    return <TextArea {...shared} rows={Math.max(3, value.split('\n').length)} onInput={onChange} />;
  return <TextField {...shared} onInput={onChange} />;
}

function useSaved(name: PolicyName, own: OwnPolicies): Draft {
  return useMemo(() => {
    const saved = own[name];
    return {
      mode: saved === undefined ? 'unset' : saved === null ? 'off' : 'set',
      texts: textsOf(POLICY_FORMS[name], saved),
      json: pretty(saved ?? POLICY_FORMS[name].base),
    };
  }, [own, name]);
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
    const message = `${place}: this is not JSON (${thrown instanceof Error ? thrown.message : thrown})`;
    throw new ApiError(message, 'invalid_json', 0, undefined, undefined, []);
  }
}

/** Items of a list are lines of the field: `0: must be …` is about the first. */
function lineNumbered(problem: string | undefined): string | undefined {
  return problem?.replace(/^(\d+): /, (_, index: string) => `Line ${Number(index) + 1}: `);
}
