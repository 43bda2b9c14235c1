/** The methods that endpoints answer to. */
export const ENDPOINT_METHODS = ['GET', 'POST', 'PUT', 'DELETE', 'PATCH'] as const;

export type EndpointMethod = (typeof ENDPOINT_METHODS)[number];
