// Says what each endpoint of the author's side requires. Who sends an author key may do everything; a token has scopes. The
// descriptions of the endpoints, their problems and OpenAPI derive from this table.
import { z } from 'zod';
import { ledgerUnavailable, ledgerUnconfigured } from '../../billing/index.ts';
import type { Endpoint } from '../../http/index.ts';
import { forgeUnreachable, missingScope } from '../problems.ts';

/** What a token may be allowed, with its meaning for those who make one. */
export const scopeMeanings = {
  read: 'see the private side of the app: state, releases, settings, names of secrets, notifications, figures, audit log, export',
  logs: 'read what the app prints, and its crashes',
  deploy: 'deploy, rebuild and roll back',
  control: 'restart, suspend and resume, and start tasks',
  secrets: 'set and delete secrets',
  settings: 'change settings, domains, notifications and who may visit, and get the secret of the push hook',
} as const;

export type Scope = keyof typeof scopeMeanings;
export const scopes = Object.keys(scopeMeanings) as [Scope, ...Scope[]];
export const scope = z.enum(scopes);

/** A holder of these alone can change nothing. */
export const viewerScopes: readonly Scope[] = ['read', 'logs'];

/**
 * `owner`: no token is accepted. `key`: an account neither, because what is made ends with the line of a key. `anyone`: no
 * author key is needed, though perhaps another proof.
 */
export type Permission = Scope | 'owner' | 'key' | 'anyone';

/** Every endpoint of the author's side, by its operation. */
export const permissions = {
  issueAppKey: 'anyone',
  receivePush: 'anyone',
  showStoppedMail: 'anyone',
  stopMail: 'anyone',
  showContactConfirmation: 'anyone',
  confirmContact: 'anyone',
  listSignInProviders: 'anyone',

  getOwnApp: 'read',
  getAuditLog: 'read',
  getFigures: 'read',
  getSettings: 'read',
  listPreviews: 'read',
  getAccess: 'read',
  listAppTasks: 'read',
  listTaskRuns: 'read',
  listAppRuns: 'read',
  getRun: 'read',
  listDomains: 'read',
  listSecrets: 'read',
  getForgeToken: 'read',
  listNotifications: 'read',
  exportApp: 'read',

  readAppLog: 'logs',
  listAppCrashes: 'logs',

  deployApp: 'deploy',
  rebuildApp: 'deploy',
  rollBackApp: 'deploy',

  restartApp: 'control',
  suspendApp: 'control',
  resumeApp: 'control',
  startTask: 'control',

  setSecret: 'secrets',
  deleteSecret: 'secrets',

  changeSettings: 'settings',
  setAccess: 'settings',
  createAccessKey: 'settings',
  revokeAccessKey: 'settings',
  addDomain: 'settings',
  checkDomain: 'settings',
  removeDomain: 'settings',
  setNotificationWebhook: 'settings',
  removeNotificationWebhook: 'settings',
  startNotificationMail: 'settings',
  addNotificationContact: 'settings',
  removeNotificationContact: 'settings',
  chooseNotificationEvents: 'settings',
  testNotifications: 'settings',
  getPushHookSecret: 'settings',
  replacePushHookSecret: 'settings',
  endPreviousPushHookSecret: 'settings',

  // A command can print every secret of the app.
  startCommand: 'owner',
  // With it, the platform writes to the repository.
  setForgeToken: 'owner',
  deleteForgeToken: 'owner',
  renameApp: 'owner',
  deleteApp: 'owner',
  restoreApp: 'owner',
  listTokens: 'owner',
  createToken: 'key',
  revokeToken: 'owner',
} as const satisfies Readonly<Record<string, Permission>>;

type Operation = keyof typeof permissions;
/** Operations that need an author key, or a token with their scope. */
export type AuthorOperation = {
  [Name in Operation]: (typeof permissions)[Name] extends 'anyone' ? never : Name;
}[Operation];

/** Adds to each endpoint what the table says of it. @throws TypeError for an endpoint that the table lacks */
export function applyPermissions(endpoints: readonly Endpoint[]): Endpoint[] {
  return endpoints.map((endpoint) => {
    if (!isListed(endpoint.operation))
      throw new TypeError(`${endpoint.operation} needs an entry in \`permissions\` of api/apps/author/scopes.ts`);
    const permission: Permission = permissions[endpoint.operation];
    return permission === 'anyone' ? endpoint : describePermission(endpoint, permission);
  });
}

function isListed(operation: string): operation is Operation {
  return Object.hasOwn(permissions, operation);
}

function describePermission(endpoint: Endpoint, permission: Exclude<Permission, 'anyone'>): Endpoint {
  const needs =
    permission === 'owner' || permission === 'key'
      ? 'Needs an author key; a token is not accepted.'
      : `Needs an author key, or a token with the scope \`${permission}\`.`;
  return {
    ...endpoint,
    description: `${endpoint.description} ${needs}`,
    authorScope: permission,
    // A token is looked up in the database, and the forge is asked about an account.
    problems: [
      ...new Set([...endpoint.problems, missingScope, forgeUnreachable, ledgerUnconfigured, ledgerUnavailable]),
    ],
  };
}
