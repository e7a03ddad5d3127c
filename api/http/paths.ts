// Paths that more than one room speaks of.

/** The endpoint by which apps are called. */
export const callAppPath = '/api/projects/{slug}/call';
