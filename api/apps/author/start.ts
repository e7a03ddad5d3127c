// Starts what authors run their apps with: their access, the audit log, and all endpoints of an app's private side.
import type { AppsSite } from '../../../crds/names.ts';
import type { Logger } from '../../../lib/telemetry.ts';
import type { OpenLedger } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import type { AppIndex } from '../hosted-apps.ts';
import { AuthorAccess, type AuthorAccessOptions } from './access.ts';
import { AuditLog } from './audit.ts';
import type { WriteControl } from './control.ts';
import { createDeletionEndpoints } from './deletion.ts';
import { type AuthorServices, createAuthorAppEndpoints } from './endpoints.ts';
import { createPushHookEndpoints, PushPolls } from './push-hook.ts';
import { createReleaseEndpoints } from './releases.ts';
import { createSecretEndpoints } from './secrets.ts';
import { createSettingEndpoints } from './settings.ts';

/** What the cluster does for authors. */
export interface AuthorCluster {
  readonly lookUpKeys: AuthorAccessOptions['lookUpKeys'];
  readonly writeControl: WriteControl;
  readonly createSecret: AuthorServices['createSecret'];
  /** Replicas that an author may set. */
  readonly maximumReplicas: number;
  readonly rememberSecret?: AuthorServices['rememberSecret'];
}

export interface AuthorSideOptions extends AuthorCluster {
  readonly apps: Pick<AppIndex, 'get' | 'listAll'>;
  readonly site: AppsSite;
  readonly baseUrl: string;
  /** The secrets of push hooks are derived from it; without it, there are none. */
  readonly secret: string | undefined;
  /** Milliseconds from the deletion of an app by its author until it is removed. */
  readonly deleteGraceMs: number;
  /** @throws Problem (ledger-unconfigured, ledger-unavailable) while there is none */
  readonly database: () => OpenLedger['database'];
  readonly log: Logger;
}

export interface AuthorSide {
  readonly endpoints: readonly Endpoint[];
  readonly access: AuthorAccess;
  stop(): Promise<void>;
}

export function startAuthorSide(options: AuthorSideOptions): AuthorSide {
  const { lookUpKeys, writeControl, apps, baseUrl, secret, deleteGraceMs, database, log } = options;
  const audit = new AuditLog(database);
  const access = new AuthorAccess({ apps, lookUpKeys, audit });
  const polls = new PushPolls({ writeControl, log });
  const services: AuthorServices = { ...options, access, audit };
  return {
    endpoints: [
      ...createAuthorAppEndpoints(services),
      ...createReleaseEndpoints(services),
      ...createSecretEndpoints(services),
      ...createSettingEndpoints(services),
      ...createDeletionEndpoints(services, { graceMs: deleteGraceMs }),
      ...createPushHookEndpoints(services, { baseUrl, secret, polls }),
    ],
    access,
    stop: () => polls.stop(),
  };
}
