/** The secrets of the installation, which services name in their settings, and files of a stack. */
import { call } from '../api/client.js';
import { useQuery } from '../api/query.js';
import { may, me } from '../api/session.js';
import { type SecretPlace, SecretsOf } from '../settings/secrets-section.js';

const PLACE: SecretPlace = {
  title: 'Secrets of the installation',
  hint: 'Settings of services and files that are applied name them. They are stored encrypted, and nobody can read them here.',
  whenDeleted: 'One that a service uses is not deleted.',
  set: (name, value) => call('PUT /api/secrets/{name}', { params: { name }, body: { value } }),
  remove: (name) => call('DELETE /api/secrets/{name}', { params: { name } }),
};

export function InstallationSecrets() {
  const mayRead = may('secrets:read') && me.value?.domains === null;
  const result = useQuery('GET /api/secrets', mayRead ? {} : undefined);
  return mayRead ? <SecretsOf place={PLACE} result={result} /> : null;
}
