// Every alert, in the order of the reference.
import type { AlertGroup } from '../alert.ts';
import { api } from './api.ts';
import { builds } from './builds.ts';
import { cluster } from './cluster.ts';
import { ledger } from './ledger.ts';
import { metering } from './metering.ts';
import { operator } from './operator.ts';

export const alertGroups: readonly AlertGroup[] = [builds, operator, api, ledger, metering, cluster];
