// Paths that more than one room speaks of.

/** The endpoint by which apps are called. */
export const callPath = '/api/projects/{slug}/call';
