/** The form of a service, new or not. */
import { call } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { me } from '../api/session.js';
import { Check, SelectField, TextField } from '../base/controls.js';
import { useDraft } from '../base/draft.js';
import { Form } from '../base/form.js';
import { HostsField, hostsOf } from '../base/hosts-field.js';
import { Loaded } from '../base/notices.js';
import type { Service } from '../generated/routes.js';
import { ConfigForm } from './config-form.js';
import { TYPE_NAMES, typesToMake } from './parts.js';
import {
  configOf,
  type Setting,
  type StoredConfig,
  type Typed,
  type TypedConfig,
  typedOf,
  useSettings,
} from './settings.js';
import { forgetTest } from './tests.js';

interface ServiceFormProps {
  /** Undefined: a new one. */
  readonly service?: Service;
  readonly type: Service['service_type'];
  readonly onType?: (type: Service['service_type']) => void;
  readonly onDone: (service: Service) => void;
  readonly onCancel?: () => void;
}

export function ServiceForm(props: ServiceFormProps) {
  const result = useSettings(props.type);
  return (
    <Loaded result={result}>
      {(settings) => <LoadedForm key={props.type} {...props} settings={settings} />}
    </Loaded>
  );
}

interface Draft {
  readonly name: string;
  readonly hosts: string;
  readonly isEnabled: boolean;
  /** Without secrets, which are not kept. */
  readonly config: TypedConfig;
}

function LoadedForm({
  service,
  type,
  settings,
  onType,
  onDone,
  onCancel,
}: ServiceFormProps & { readonly settings: readonly Setting[] }) {
  const stored = service?.config as unknown as StoredConfig | undefined;
  const initial: Draft = {
    name: service?.name ?? '',
    // Whoever is limited to some hosts makes it for these.
    hosts: (service?.domains ?? me.value?.domains ?? []).join('\n'),
    isEnabled: service?.enabled ?? true,
    config: typedOf(settings, stored),
  };
  // Only what is typed: all else follows what somebody else changes meanwhile.
  const [changes, setChanges, forget] = useDraft<Partial<Draft>>(
    `service-${service?.id ?? type}`,
    {},
    withoutSecrets,
  );
  const draft = { ...initial, ...changes };
  const typed = { ...initial.config, ...changes.config };
  const change = (part: Partial<Draft>) => setChanges((before) => ({ ...before, ...part }));
  const changeConfig = (config: TypedConfig) => {
    const isChanged = ([name, value]: readonly [string, Typed]) => value !== typed[name];
    const changed = Object.fromEntries(Object.entries(config).filter(isChanged));
    setChanges((before) => ({ ...before, config: { ...before.config, ...changed } }));
  };

  const save = async () => {
    const config = configOf(settings, typed, stored);
    const fields = { name: draft.name, enabled: draft.isEnabled, domains: hostsOf(draft.hosts) };
    const { data } = service
      ? await call('PUT /api/services/{id}', {
          params: { id: service.id },
          body: { ...fields, ...(Object.keys(config).length > 0 && { config }) },
        })
      : await call('POST /api/services', { body: { ...fields, service_type: type, config } });
    forgetTest(data.id);
    forget();
    invalidate('/api/services');
    onDone(data);
  };
  return (
    <Form action={service ? 'Save' : 'Create the service'} onSubmit={save} {...(onCancel && { onCancel })}>
      {(problemAt) => (
        <>
          {onType && (
            <SelectField
              label="Type"
              options={typesToMake().map((one) => ({ value: one, label: TYPE_NAMES[one] }))}
              value={type}
              onChange={onType}
            />
          )}
          <TextField
            label="Name"
            required
            autocomplete="off"
            value={draft.name}
            onInput={(name) => change({ name })}
            problem={problemAt('body.name')}
          />
          <ConfigForm
            settings={settings}
            typed={typed}
            stored={stored}
            onChange={changeConfig}
            problemAt={problemAt}
          />
          <details class="more" open={draft.hosts !== '' || problemAt('body.domains') !== undefined}>
            <summary>Who may use it</summary>
            <HostsField
              value={draft.hosts}
              onInput={(hosts) => change({ hosts })}
              problem={problemAt('body.domains')}
              hint={`Only endpoints of these hosts may use it${me.value?.domains === null ? '; none: all' : ''}.`}
            />
            <Check
              label="Enabled"
              hint="A disabled service cannot be activated."
              isChecked={draft.isEnabled}
              onChange={(isEnabled) => change({ isEnabled })}
            />
          </details>
        </>
      )}
    </Form>
  );
}

function withoutSecrets(draft: Partial<Draft>): Partial<Draft> {
  const isPlain = (value: Typed) =>
    typeof value === 'string' || (Array.isArray(value) && value.every((one) => typeof one === 'string'));
  return {
    ...draft,
    config: Object.fromEntries(Object.entries(draft.config ?? {}).filter(([, value]) => isPlain(value))),
  };
}
