// Every dashboard, in the order of the reference.
import type { Dashboard } from '../panel.ts';
import { apiAndModels } from './api-and-models.ts';
import { buildsAndApps } from './builds-and-apps.ts';
import { ledger } from './ledger.ts';
import { meteringAndSleep } from './metering-and-sleep.ts';
import { overview } from './overview.ts';
import { toolsAndWorkers } from './tools-and-workers.ts';

export const dashboards: readonly Dashboard[] = [
  overview,
  buildsAndApps,
  apiAndModels,
  toolsAndWorkers,
  ledger,
  meteringAndSleep,
];
