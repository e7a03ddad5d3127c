// What the rest of the API uses of this room: submission of repositories, their status and logs.
export { createRepositoryCheck } from './check-repository.ts';
export { submitEndpoints } from './endpoints.ts';
export { podLogs } from './log/pod-log.ts';
export { submitMetrics } from './metrics.ts';
export { createSubmitter } from './submit-app.ts';
export { submitWithoutCluster } from './without-cluster.ts';
