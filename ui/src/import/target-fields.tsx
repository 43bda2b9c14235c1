/** Where endpoints go, and what is done with them. */
import { useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { Check, SelectField, TextField } from '../base/controls.js';
import type { Domain } from '../generated/routes.js';
import type { Options } from './request.js';

export interface TargetChoice {
  /** `*`: all; empty: `newHost`. */
  readonly host: string;
  readonly newHost: string;
  /** `title`, `none` or an id. */
  readonly collection: string;
  readonly validate: Options['validate'];
  readonly deploys: boolean;
}

interface TargetFieldsProps {
  readonly chosen: TargetChoice;
  readonly domains: readonly Domain[];
  readonly isBundle: boolean;
  readonly onChange: (chosen: TargetChoice) => void;
}

const CHECKS = [
  { value: 'off' as const, label: 'By the code alone' },
  { value: 'report' as const, label: 'By the document too; only report' },
  { value: 'enforce' as const, label: 'By the document too; refuse with 400' },
];

export function TargetFields({ chosen, domains, isBundle, onChange }: TargetFieldsProps) {
  const domain = domains.find(({ host }) => host === chosen.host);
  const collections = useQuery(
    'GET /api/domains/{id}/collections',
    domain && may('collections:read') ? { params: { id: domain.id } } : undefined,
  );
  const change = (part: Partial<TargetChoice>) => onChange({ ...chosen, ...part });
  const isUnlimited = me.value?.domains === null;
  const hosts = [
    ...domains.map(({ host, name }) => ({ value: host, label: name === host ? host : `${host} (${name})` })),
    ...(isUnlimited ? [{ value: '*', label: 'Any host' }] : []),
    ...(isUnlimited && may('domains:write') ? [{ value: '', label: 'A new domain …' }] : []),
  ];
  return (
    <>
      <div class="settings">
        <SelectField
          label="Host"
          options={hosts}
          value={chosen.host}
          onChange={(host) => change({ host, collection: 'title' })}
        />
        {chosen.host === '' && (
          <TextField
            label="Host of the new domain"
            placeholder="api.example.com"
            value={chosen.newHost}
            onInput={(newHost) => change({ newHost })}
          />
        )}
        {domain && (
          <SelectField
            label="Collection"
            options={[
              { value: 'title', label: 'With the title of the document' },
              ...(collections.data ?? []).map(({ id, name }) => ({ value: id, label: name })),
              { value: 'none', label: 'None' },
            ]}
            value={chosen.collection}
            onChange={(collection) => change({ collection })}
          />
        )}
        <SelectField
          label="Requests are checked"
          options={CHECKS}
          value={chosen.validate}
          onChange={(validate) => change({ validate })}
        />
      </div>
      {isBundle && may('endpoints:deploy') && (
        <Check
          label="Compile and start the handlers of the ZIP"
          isChecked={chosen.deploys}
          onChange={(deploys) => change({ deploys })}
        />
      )}
    </>
  );
}
