// The commands of `moorage`, in the order in which its help and the reference list them.
import { createCompletionCommand } from './completion.ts';
import { audit, exportApp, hook, login, logout } from './commands/access.ts';
import {
  deploy,
  open,
  previews,
  rebuild,
  releases,
  remove,
  rename,
  restart,
  restore,
  resume,
  rollback,
  status,
  suspend,
} from './commands/apps.ts';
import { domainsAdd, domainsCheck, domainsList, domainsRemove } from './commands/domains.ts';
import { buildLog, logs, plan, submit, verify } from './commands/builds.ts';
import { deployKey, forgeToken, forgeTokenDelete, forgeTokenSet } from './commands/forge-token.ts';
import { figures } from './commands/figures.ts';
import {
  notificationsAdd,
  notificationsEvents,
  notificationsList,
  notificationsRemove,
  notificationsTest,
  notificationsWebhook,
} from './commands/notifications.ts';
import { envList, envSet, envUnset, secretsList, secretsSet, secretsUnset, settings } from './commands/settings.ts';
import { tokensCreate, tokensList, tokensRevoke } from './commands/tokens.ts';
import { access, accessAdd, accessKeys, accessRevoke } from './commands/visitors.ts';
import { runCommand, tasksList, tasksRun, tasksRuns } from './commands/tasks.ts';
import type { Command } from './program.ts';

export const commands: readonly Command[] = [
  plan,
  submit,
  login,
  logout,
  status,
  logs,
  figures,
  buildLog,
  open,
  releases,
  previews,
  rollback,
  deploy,
  rebuild,
  restart,
  suspend,
  resume,
  runCommand,
  tasksList,
  tasksRun,
  tasksRuns,
  rename,
  remove,
  restore,
  secretsList,
  secretsSet,
  secretsUnset,
  envList,
  envSet,
  envUnset,
  settings,
  notificationsList,
  notificationsAdd,
  notificationsRemove,
  notificationsWebhook,
  notificationsEvents,
  notificationsTest,
  tokensCreate,
  tokensList,
  tokensRevoke,
  access,
  accessKeys,
  accessAdd,
  accessRevoke,
  domainsList,
  domainsAdd,
  domainsCheck,
  domainsRemove,
  hook,
  deployKey,
  forgeToken,
  forgeTokenSet,
  forgeTokenDelete,
  audit,
  exportApp,
  verify,
  createCompletionCommand(() => commands),
];
