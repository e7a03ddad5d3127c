// The service as every document describes it: name, interface version, description, authentication, and how apps are called.

export const serviceName = 'Moorage';
export const serviceVersion = '1.1.0';
export const serviceDescription =
  'Hosts open-source AI applications from their git repositories, each on its own subdomain over HTTPS; runs prompts on one model or compares several, with metered cost; and offers tools that any HTTP client can call.';
export const serviceAuthentication =
  'Optional. Calls without a key use a free daily quota. Send your own key for the model router as `Authorization: Bearer sk-…` to remove the quota and to use premium models.';

/** Path of the endpoint that calls hosted apps. */
export const callAppPath = '/api/projects/{slug}/call';
