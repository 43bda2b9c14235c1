/** Hosts to which something is limited, one a line. */
import { useQuery } from '../api/query.js';
import { may } from '../api/session.js';
import { Field } from './controls.js';

interface HostsFieldProps {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly problem: string | undefined;
  readonly hint: string;
}

/** What is said of one of several begins with its number. */
const AT_ONE = /^(\d+): /;

export function HostsField({ value, onInput, problem, hint }: HostsFieldProps) {
  const { data = [] } = useQuery(
    'GET /api/domains',
    may('domains:read') ? { query: { limit: 100 } } : undefined,
  );
  const given = hostsOf(value);
  const others = data.filter(({ host }) => !given.includes(host));
  return (
    <Field label="Hosts" hint={hint} problem={problem?.replace(AT_ONE, (_, at) => `“${given[at]}”: `)}>
      {(attributes) => (
        <>
          <textarea
            class="input mono short"
            rows={2}
            spellcheck={false}
            {...attributes}
            value={value}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
          {others.length > 0 && (
            <select
              class="input"
              aria-label="Add a host"
              value=""
              onChange={(event) => onInput([...given, event.currentTarget.value].join('\n'))}
            >
              <option value="">Add a host …</option>
              {others.map(({ id, host }) => (
                <option key={id} value={host}>
                  {host}
                </option>
              ))}
            </select>
          )}
        </>
      )}
    </Field>
  );
}

/** The hosts of a text. */
export function hostsOf(text: string): string[] {
  return [...new Set(text.split(/[\s,]+/).filter((host) => host !== ''))];
}
