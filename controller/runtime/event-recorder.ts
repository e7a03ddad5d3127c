// Records Events about objects, for `kubectl describe`; repeats are counted, floods are cut, failures are only logged.
import type { Client } from './client.ts';
import type { Clock } from './clock.ts';
import type { Logger } from './logger.ts';
import type { KubeObject } from './object.ts';

/** What happened. */
export interface EventNote {
  type: 'Normal' | 'Warning';
  /** CamelCase, 128 characters at most; the condition's own reason where there is one. */
  reason: string;
  /** For people; cut at 1 kB. */
  message: string;
  /** What was being done; default `Reconcile`. */
  action?: string;
}

/** Settings of a recorder. */
export interface EventRecorderOptions {
  client: Client;
  /** Who reports, such as `moorage.dev/operator`. */
  controller: string;
  /** Which replica; default the host name. */
  instance?: string;
  /** Events about one object: at once, and a second afterwards; default 25 and 1/300. */
  perObject?: { perSecond: number; burst: number };
  /** A repeat within this time counts as the same series; default 360 000. */
  seriesWindowMs?: number;
  clock?: Clock;
  log?: Logger;
}

/** Records Events. */
export interface EventRecorder {
  /** Records what happened to `object`. Returns at once and never throws. */
  record(object: Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>, note: EventNote): void;
  /** Resolves when everything recorded so far is sent or given up. */
  flush(): Promise<void>;
}

/** Makes a recorder. */
export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  throw new Error(`not implemented ${options.controller}`);
}
