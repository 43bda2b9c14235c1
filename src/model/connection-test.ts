/** The outcome of a connection test of a service. */
export type ConnectionTest =
  | { readonly connected: true; readonly latency_ms: number; readonly message: string }
  | { readonly connected: false; readonly error: string };
