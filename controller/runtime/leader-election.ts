// Lets one replica of several act at a time, by a Lease that the leader keeps renewing.
import type { Client } from './client.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';

/** Settings of an election. All replicas must use the same durations. */
export interface LeaderElectionOptions {
  client: Client;
  /** The Lease. */
  namespace: string;
  name: string;
  /** Unlike any other replica's; the pod's name with something random. */
  identity: string;
  /** How long others wait after the last renewal that they saw; default 10 000. */
  leaseDurationMs?: number;
  /** How long the leader goes on without a renewal; below `leaseDurationMs`; default 7 000. */
  renewDeadlineMs?: number;
  /** Between tries, before jitter; default 2 000. */
  retryPeriodMs?: number;
  /** Called when this replica starts to lead. Its signal is aborted when it ceases to. */
  onAcquired?: (signal: AbortSignal) => void;
  /** Called when leadership is lost against our will: stop acting at once (best: exit). Not called after `signal` of `run` is aborted. */
  onLost: (reason: string) => void;
  clock?: Clock;
  log?: Logger;
}

/** One replica's part in the election. */
export interface LeaderElection {
  readonly isLeader: boolean;
  /** Identity of the leader last seen. */
  readonly leader: string | undefined;
  /** Takes part until `signal` is aborted (then the lease is released) or leadership is lost. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
}

/** Makes a candidate; nothing is asked of the server until `run`. */
export function createLeaderElection(options: LeaderElectionOptions): LeaderElection {
  throw new Error(`not implemented ${options.name}`);
}
