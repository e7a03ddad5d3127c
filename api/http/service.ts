// What this service is: its name, the version of its interface, and how callers are known.

export const name = 'Moorage';
export const version = '1.1.0';
export const description =
  'Hosts open-source AI applications from their git repositories, each on its own subdomain over HTTPS; asks and compares models with metered cost; and offers tools that any HTTP client can call.';
export const authentication =
  'Optional. Without a key, calls draw on a free quota per day. `Authorization: Bearer sk-…`, a key of the model router, lifts the quota and opens models of the tier premium.';
