/** How much the policies of one domain may have together: gateways have all of them in memory. */

import type { Policies } from './policies.js';

export interface PolicyLimitSetting {
  readonly POLICIES_OF_DOMAIN_MB: number;
}

/** Bytes. */
export function policyLimit({ POLICIES_OF_DOMAIN_MB }: PolicyLimitSetting): number {
  return POLICIES_OF_DOMAIN_MB * 1024 * 1024;
}

/**
 * What a text takes in the memory of a gateway besides its characters, for each of its two quotes: as many short texts
 * as fit into a list would otherwise take seventeen times what is counted.
 */
export const BYTES_OF_QUOTE = 24;

/** About the memory that a policy takes, by its JSON. Of `validate` there is only the text itself. */
export function weightOf(json: string): number {
  return Buffer.byteLength(json) + BYTES_OF_QUOTE * quotesIn(json);
}

/** Counted, not split: a list of the texts between them would take many times the memory of the text. */
function quotesIn(json: string): number {
  let quotes = 0;
  for (let at = json.indexOf('"'); at >= 0; at = json.indexOf('"', at + 1)) quotes++;
  return quotes;
}

/**
 * The same of what is set somewhere. Not to be compared with a weight of `policy-weight.ts`, which is the same of the
 * text that PostgreSQL makes: with a space after each `:` and `,`, and numbers without exponents.
 */
export function weightOfPolicies(policies: Policies | null | undefined): number {
  if (!policies) return 0;
  const { validate, ...others } = policies;
  return weightOf(JSON.stringify(others)) + (validate ? Buffer.byteLength(JSON.stringify(validate)) : 0);
}

/** What is wrong with more. @param host `*`: of the endpoints for all hosts; @param limit bytes */
export function tooLargeForDomain(host: string, limit: number): string {
  const whose = host === '*' ? 'endpoints for all hosts' : `the domain "${host}"`;
  return `the policies of ${whose} have more than ${limit / 1024 / 1024} MiB together (POLICIES_OF_DOMAIN_MB)`;
}
