/** The filters of the log. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { ApiError } from '../../api/client.js';
import { Button, SelectField, TextField } from '../../base/controls.js';
import { isAtOneOf, problemAt } from '../../base/problems.js';
import { useDebounced } from '../../base/use-debounced.js';
import { type FilterName, fromLocal, type LogFilter, toLocal } from './filter.js';

interface LogFiltersProps {
  readonly filter: LogFilter;
  readonly error: ApiError | undefined;
  readonly onChange: (filter: LogFilter) => void;
}

const TYPED_MS = 300;
const LEVELS = [
  { value: '', label: 'All levels' },
  { value: 'debug', label: 'Debug and above' },
  { value: 'info', label: 'Info and above' },
  { value: 'warn', label: 'Warnings and errors' },
  { value: 'error', label: 'Errors' },
] as const;
const KINDS = [
  { value: '', label: 'Output and requests' },
  { value: 'output', label: 'Output of the handler' },
  { value: 'request', label: 'Requests' },
] as const;
/** Shown when asked for, or when one of them is set. */
const MORE = ['request_id', 'trace_id', 'version', 'since', 'until'] as const;

export function LogFilters({ filter, error, onChange }: LogFiltersProps) {
  const latest = useRef(filter);
  latest.current = filter;
  const set = (name: FilterName, value: string | undefined) => {
    if ((latest.current[name] ?? '') !== (value ?? '')) onChange({ ...latest.current, [name]: value });
  };
  const problem = (name: FilterName) => problemAt(error, `query.${name}`);
  const typed = (name: FilterName) => ({
    value: filter[name] ?? '',
    problem: problem(name),
    onChange: (value: string) => set(name, value),
  });
  const isSet = Object.values(filter).some(Boolean);
  return (
    <search class="log-filters stack tight">
      <div class="row">
        <Typed label="Search" type="search" placeholder="Text of the message or path" {...typed('search')} />
        <SelectField
          label="Level"
          value={filter.level ?? ''}
          options={LEVELS}
          problem={problem('level')}
          onChange={(value) => set('level', value)}
        />
        <SelectField
          label="Kind"
          value={filter.kind ?? ''}
          options={KINDS}
          problem={problem('kind')}
          onChange={(value) => set('kind', value)}
        />
        <Typed label="Status" placeholder="5xx or 503" {...typed('status')} />
        {isSet && <Button onClick={() => onChange({})}>Clear filters</Button>}
      </div>
      <details open={MORE.some((name) => filter[name] !== undefined)}>
        <summary>Request, version, time</summary>
        <div class="row">
          <Typed label="Request id" {...typed('request_id')} />
          <Typed label="Trace id" {...typed('trace_id')} />
          <Typed label="Version" {...typed('version')} />
          <TextField
            label="From"
            type="datetime-local"
            value={toLocal(filter.since)}
            problem={problem('since')}
            onInput={(value) => set('since', fromLocal(value))}
          />
          <TextField
            label="Until"
            type="datetime-local"
            value={toLocal(filter.until)}
            problem={problem('until')}
            onInput={(value) => set('until', fromLocal(value))}
          />
        </div>
      </details>
    </search>
  );
}

const FIELDS = ['search', 'level', 'kind', 'status', ...MORE] as const;

/** Whether an error is said at one of the filters. */
export function isAtFilter(error: ApiError): boolean {
  return isAtOneOf(
    error,
    FIELDS.map((name) => `query.${name}`),
  );
}

interface TypedProps {
  readonly label: string;
  readonly value: string;
  readonly problem: string | undefined;
  readonly onChange: (value: string) => void;
  readonly type?: 'search';
  readonly placeholder?: string;
}

/** A field whose value counts when nothing has been typed for a moment. */
function Typed({ value, onChange, ...field }: TypedProps) {
  const [text, setText] = useState(value);
  const debounced = useDebounced(text, TYPED_MS);
  useEffect(() => setText(value), [value]);
  useEffect(() => {
    if (debounced === text) onChange(debounced.trim());
  }, [debounced]);
  return <TextField {...field} value={text} onInput={setText} />;
}
