// Lists every alert and every dashboard, in the order of the reference.
import type { AlertGroup } from './alert.ts';
import { api, cluster } from './alerts/api-and-cluster.ts';
import { builds, operator } from './alerts/builds-and-operator.ts';
import { ledger, metering } from './alerts/ledger-and-metering.ts';
import type { Dashboard } from './dashboard.ts';
import { apiAndModels } from './dashboards/api-and-models.ts';
import { buildsAndApps } from './dashboards/builds-and-apps.ts';
import { ledger as ledgerDashboard } from './dashboards/ledger.ts';
import { meteringAndSleep } from './dashboards/metering-and-sleep.ts';
import { overview } from './dashboards/overview.ts';
import { toolsAndWorkers } from './dashboards/tools-and-workers.ts';

export const alertGroups: readonly AlertGroup[] = [builds, operator, api, ledger, metering, cluster];

export const dashboards: readonly Dashboard[] = [
  overview,
  buildsAndApps,
  apiAndModels,
  toolsAndWorkers,
  ledgerDashboard,
  meteringAndSleep,
];
