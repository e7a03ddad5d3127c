// The controller runtime's public face. It knows nothing of what is being controlled.
export * from './apply.ts';
export * from './client.ts';
export * from './clock.ts';
export * from './connection.ts';
export * from './controller.ts';
export * from './errors.ts';
export * from './event-recorder.ts';
export * from './health.ts';
export * from './leader-election.ts';
export * from './logger.ts';
export * from './manager.ts';
export * from './metrics.ts';
export * from './object.ts';
export * from './queue.ts';
export * from './reflector.ts';
export * from './shutdown.ts';
export * from './store.ts';
