/** The form of a service, new or not. */
import { call } from '../api/client.js';
import { invalidate } from '../api/query.js';
import { me } from '../api/session.js';
import { Check, SelectField, TextField } from '../base/controls.js';
import { useDraft } from '../base/draft.js';
import { Form } from '../base/form.js';
import { HostsField, hostsOf } from '../base/hosts-field.js';
import { Loaded } from '../base/notices.js';
import type { Field } from '../fields/schema.js';
import type { FieldInput } from '../fields/values.js';
import type { Service } from '../generated/routes.js';
import {
  ConfigForm,
  configOf,
  type StoredConfig,
  type TypedConfig,
  typedConfig,
  useSettings,
} from './config-form.js';
import { TYPE_NAMES, typesToMake } from './parts.js';
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
  // Only what is typed: all else follows what somebody else changes meanwhile. Of a new one, it stays with another type.
  const common = useDraft<Partial<Common>>(`service-${props.service?.id ?? 'new'}`, {});
  return (
    <Loaded result={result}>
      {(settings) => <LoadedForm key={props.type} {...props} common={common} settings={settings} />}
    </Loaded>
  );
}

/** What services of all types have. */
interface Common {
  readonly name: string;
  readonly hosts: string;
  readonly isEnabled: boolean;
}

interface LoadedFormProps extends ServiceFormProps {
  readonly settings: readonly Field[];
  readonly common: ReturnType<typeof useDraft<Partial<Common>>>;
}

function LoadedForm({
  service,
  type,
  settings,
  common: [changes, setChanges, forget],
  onType,
  onDone,
  onCancel,
}: LoadedFormProps) {
  const stored = service?.config as unknown as StoredConfig | undefined;
  const initial: Common = {
    name: service?.name ?? '',
    // Whoever is limited to some hosts makes it for these.
    hosts: (service?.domains ?? me.value?.domains ?? []).join('\n'),
    isEnabled: service?.enabled ?? true,
  };
  const [configChanges, setConfigChanges, forgetConfig] = useDraft<TypedConfig>(
    `service-config-${service?.id ?? type}`,
    {},
    withoutSecrets,
  );
  const draft = { ...initial, ...changes };
  const typed = { ...typedConfig(settings, stored), ...configChanges };
  const change = (part: Partial<Common>) => setChanges((before) => ({ ...before, ...part }));
  const changeConfig = (config: TypedConfig) => {
    const isChanged = ([name, value]: readonly [string, FieldInput]) => value !== typed[name];
    const changed = Object.fromEntries(Object.entries(config).filter(isChanged));
    setConfigChanges((before) => ({ ...before, ...changed }));
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
    forgetConfig();
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

/** Secrets are not kept. */
function withoutSecrets(config: TypedConfig): TypedConfig {
  const isPlain = (value: FieldInput) =>
    typeof value === 'string' || (Array.isArray(value) && value.every((one) => typeof one === 'string'));
  return Object.fromEntries(Object.entries(config).filter(([, value]) => isPlain(value)));
}
