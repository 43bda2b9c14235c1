/** Whether only this machine reaches a host: a name, or an address, in a URL with brackets if it is IPv6. */
export function isLoopback(host: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|::1|\[::1\])$/.test(host);
}
