// Exports the Kubernetes runtime, which knows nothing of what is being controlled. Everyone imports it from here.
export * from './cache/reflector.ts';
export * from './cache/store.ts';
export * from './client/apply.ts';
export * from './client/client.ts';
export * from './client/connection.ts';
export { createClient } from './client/http-client.ts';
export { askKubelet, exchange } from './client/transport.ts';
export { applyJitter, sleep, systemClock, type Clock, type Timer } from './clock.ts';
export * from './loop/controller.ts';
export * from './loop/queue.ts';
export * from './election/leader-election.ts';
export * from './errors.ts';
export * from './event-recorder.ts';
export * from './manager/health.ts';
export * from './manager/manager.ts';
export * from './object.ts';
export * from './observability.ts';
