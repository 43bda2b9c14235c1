/** Limits of the handler, tighter than those of the installation. */
import { useMemo } from 'preact/hooks';
import { call } from '../../api/client.js';
import { invalidate } from '../../api/query.js';
import { may } from '../../api/session.js';
import { TextField } from '../../base/controls.js';
import type { Endpoint } from '../../generated/routes.js';
import { SaveForm } from '../../settings/save-form.js';
import { Section } from '../../settings/section.js';
import { useForm } from '../../settings/use-form.js';

type LimitName = keyof NonNullable<Endpoint['limits']>;

const LIMITS: Readonly<Record<LimitName, readonly [label: string, hint: string]>> = {
  memory_mb: ['Memory', 'MiB of all its processes together; beyond it, they are ended'],
  processes: ['Processes and threads', 'More cannot be started'],
  open_files: ['Open files and connections', 'Of one process; more cannot be opened'],
  cpu_percent: ['Processor time', 'Percent of one core over ten seconds; beyond it, they are ended'],
  timeout_ms: ['Deadline of a request', 'Milliseconds; beyond it, the answer is 504'],
  idle_timeout_ms: [
    'Pause in a streamed response',
    'Milliseconds between two pieces; beyond it, it is cut off',
  ],
  concurrent_requests: ['Requests at the same time', 'On each gateway; beyond it, the answer is 429'],
  idle_ms: ['Sleeps after', 'Milliseconds without a request; the next one wakes it. 0 is never'],
  min_instances: ['Handlers kept awake', '0 or 1; with 1 it does not sleep'],
};
const NAMES = Object.keys(LIMITS) as LimitName[];

export function LimitsSection({ endpoint }: { readonly endpoint: Endpoint }) {
  const form = useForm(`limits ${endpoint.id}`, useSaved(endpoint));
  const save = async () => {
    const limits = Object.fromEntries(
      NAMES.flatMap((name) => {
        const text = form.values[name].trim();
        // The API says what is wrong with what is no number.
        return text === '' ? [] : [[name, Number.isNaN(Number(text)) ? text : Number(text)]];
      }),
    );
    const body = { limits: Object.keys(limits).length === 0 ? null : limits };
    const answer = await call('PUT /api/endpoints/{id}', { params: { id: endpoint.id }, body });
    invalidate('/api/endpoints');
    return answer;
  };
  return (
    <Section
      title="Limits"
      hint="They can be tighter than those of the installation, which count where a field is empty. They apply as soon as they are saved, without a failed request."
    >
      <SaveForm
        form={form}
        places={NAMES.map((name) => `body.limits.${name}`)}
        mayEdit={may('endpoints:write')}
        onSave={save}
      >
        {(problem) => (
          <div class="grid">
            {NAMES.map((name) => (
              <TextField
                key={name}
                label={LIMITS[name][0]}
                hint={LIMITS[name][1]}
                placeholder="as the installation"
                value={form.values[name]}
                problem={problem(`body.limits.${name}`)}
                onInput={(value) => form.set(name, value)}
              />
            ))}
          </div>
        )}
      </SaveForm>
    </Section>
  );
}

function useSaved({ limits }: Endpoint): Record<LimitName, string> {
  return useMemo(
    () =>
      Object.fromEntries(NAMES.map((name) => [name, String(limits?.[name] ?? '')])) as Record<
        LimitName,
        string
      >,
    [limits],
  );
}
