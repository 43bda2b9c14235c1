/** Who asks, where a test writes to the store by itself. */
export const ORIGIN = { requestId: 'r', actor: { kind: 'api_key' } } as const;
