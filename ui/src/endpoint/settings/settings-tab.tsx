/** What can be set of an endpoint, a section at a time; the section stands in the address. */
import type { FunctionComponent } from 'preact';
import { useSearchParams } from 'wouter-preact';
import { Sections } from '../../base/sections.js';
import type { Endpoint } from '../../generated/routes.js';
import { PoliciesSection } from '../../settings/policies-section.js';
import { GeneralSection } from './general-section.js';
import { JobsSection } from './jobs-section.js';
import { LimitsSection } from './limits-section.js';
import { SchedulesSection } from './schedules-section.js';
import { ServicesSection } from './services-section.js';
import { VariablesSections } from './variables-sections.js';

interface SectionProps {
  readonly endpoint: Endpoint;
}

const SECTIONS: Readonly<Record<string, readonly [string, FunctionComponent<SectionProps>]>> = {
  general: ['General', GeneralSection],
  limits: ['Limits', LimitsSection],
  variables: ['Variables and secrets', VariablesSections],
  policies: ['Policies', ({ endpoint: { id } }) => <PoliciesSection owner={{ kind: 'endpoints', id }} />],
  services: ['Services', ServicesSection],
  schedules: ['Schedules', SchedulesSection],
  jobs: ['Queued requests', JobsSection],
};

export function SettingsTab({ endpoint }: SectionProps) {
  const [address] = useSearchParams();
  const section = address.get('section') ?? '';
  const current = section in SECTIONS ? section : 'general';
  const [, Current = GeneralSection] = SECTIONS[current] ?? [];
  return (
    <Sections
      label="Settings"
      sections={Object.entries(SECTIONS).map(([name, [label]]) => ({
        ...{ to: `?section=${name}`, label, isCurrent: name === current },
      }))}
    >
      <Current key={endpoint.id} endpoint={endpoint} />
    </Sections>
  );
}
