/** How much the policies of one domain may have together: gateways have all of them in memory. */

/** Bytes. */
export function policyLimit({ POLICY_MEMORY_MB }: { readonly POLICY_MEMORY_MB: number }): number {
  return POLICY_MEMORY_MB * 1024 * 1024;
}

/** Bytes of policies as they are stored, roughly. */
export function bytesOfPolicies(policies: object | null | undefined): number {
  return policies ? Buffer.byteLength(JSON.stringify(policies)) : 0;
}

/** What is wrong with more. @param host `*`: of the endpoints for all hosts; @param limit bytes */
export function tooLargeForDomain(host: string, limit: number): string {
  const whose = host === '*' ? 'endpoints for all hosts' : `the domain "${host}"`;
  return `the policies of ${whose} have more than ${limit / 1024 / 1024} MiB together (POLICY_MEMORY_MB)`;
}
