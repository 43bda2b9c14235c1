/** How much the policies of one domain may have together. */

/** Why there are too many. @param limit bytes */
export function tooLargeForDomain(domain: string, limit: number): string {
  const whose = domain === '*' ? 'endpoints for all hosts' : `the domain "${domain}"`;
  return `the policies of ${whose} have more than ${limit / 1024 / 1024} MiB together (POLICY_MEMORY_MB)`;
}
