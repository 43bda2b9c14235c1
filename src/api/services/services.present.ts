/** Converts services from rows to responses. */
import type { Static } from '@sinclair/typebox';
import type { Config } from '../../config.js';
import { openConfig } from '../../lifecycle/open-config.js';
import type { SecretBox } from '../../secrets/secret-box.js';
import type { Store } from '../../store/database.js';
import type { Service } from '../../store/services.js';
import { mapInParts } from '../../util/pauses.js';
import { hideSecrets } from './redaction.js';
import type { ServiceActivity, ServiceView } from './services.schema.js';
import { type StandingOfService, standingsOf } from './states.js';

/** The dependencies of the conversion. */
export interface ServicePresentation {
  readonly store: Store;
  readonly secrets: SecretBox;
  readonly config: Pick<Config, 'REDACT_SECRETS'>;
}

export async function presentService(
  service: Service,
  deps: ServicePresentation,
): Promise<Static<typeof ServiceView>> {
  const [presented] = await presentServices([service], deps);
  return presented as Static<typeof ServiceView>;
}

export async function presentServices(
  services: readonly Service[],
  deps: ServicePresentation,
): Promise<Static<typeof ServiceView>[]> {
  const standings = await standingsOf(deps, services);
  const shown = services.map((service, at) => ({ service, standing: standings[at] as StandingOfService }));
  return mapInParts(shown, ({ service, standing }) => present(service, standing, deps));
}

function present(
  service: Service,
  standing: StandingOfService,
  { secrets, config: { REDACT_SECRETS } }: ServicePresentation,
): Static<typeof ServiceView> {
  const config = openConfig(service, secrets);
  return {
    id: service.id,
    name: service.name,
    service_type: service.service_type,
    config: REDACT_SECRETS ? hideSecrets(service.service_type, config) : config,
    enabled: service.enabled,
    domains: [...service.domains],
    stack: service.stack,
    active: service.activated_at !== null,
    ...standing,
    created_at: service.created_at.toISOString(),
    updated_at: service.updated_at.toISOString(),
  };
}

export function presentActivity(
  { id, name, service_type }: Service,
  active: boolean,
  message: string,
): Static<typeof ServiceActivity> {
  return { id, name, service_type, active, message };
}
