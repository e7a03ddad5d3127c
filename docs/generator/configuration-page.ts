// Page of the environment variables that the processes read.
import { hostname } from 'node:os';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { z } from 'zod';
import { environment as signIn } from '../../api/apps/sign-in/config.ts';
import { environment as mail } from '../../api/apps/notifications/mail.ts';
import { environment as apps } from '../../api/apps/start.ts';
import { aloneEnvironment as alone, environment as api } from '../../api/config.ts';
import { environment as revenue } from '../../api/accounting/revenue/start-revenue.ts';
import { environment as metering, shipperEnvironment as shipper } from '../../api/accounting/metering/config.ts';
import { environment as receipts } from '../../api/accounting/receipts/config.ts';
import { environment as database } from '../../api/billing/database/prepare.ts';
import { environment as models } from '../../api/models/config.ts';
import { environment as tools } from '../../api/tools/config.ts';
import { fetchEnvironment as fetching } from '../../api/tools/fetch/guard.ts';
import { environment as workers } from '../../api/tools/engine/workers/remote/worker-server.ts';
import {
  operatorEnvironment as operator,
  registryProxyEnvironment as registryProxy,
} from '../../controller/settings.ts';
import { environment as activator } from '../../activator/config.ts';
import { findChartValue, listVariables } from '../../lib/settings.ts';
import { logEnvironment } from '../../lib/telemetry.ts';
import { joinBlocks, formatCode, renderTable, type Page } from './page.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));

/** The default, as it would be written in the environment. */
function formatDefault(field: z.ZodType): string {
  if (!field.safeParse(undefined).success) return 'required';
  const { def } = field as unknown as { def: { defaultValue?: unknown } };
  const value = def.defaultValue;
  if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) return '';
  if (value === hostname()) return 'the host name';
  return formatCode(formatValue(value));
}

function formatValue(value: unknown): string {
  if (Array.isArray(value)) return value.join(',');
  if (typeof value === 'object' && value !== null)
    return Object.entries(value)
      .map(([key, one]) => `${key}=${String(one)}`)
      .join(',');
  // A path of this checkout would be another one elsewhere.
  return typeof value === 'string' && value.startsWith(root) ? relative(root, value) : String(value);
}

function renderSection(title: string, about: string, schemas: readonly z.ZodType[]): string {
  const rows = schemas.flatMap(listVariables).map(([name, field]) => {
    const value = findChartValue(field);
    return [
      formatCode(name),
      formatDefault(field),
      value === undefined ? '' : formatCode(value.path),
      field.description ?? '',
    ];
  });
  return joinBlocks(`## ${title}`, about, renderTable(['variable', 'default', 'chart value', 'meaning'], rows));
}

export const configuration: Page = {
  file: 'configuration.md',
  title: 'Configuration',
  about:
    'Every environment variable of the operator, the registry proxy, the activator, the API and the workers. The Helm chart sets them from [its values](chart-values.md).',
  sources: [
    'controller/settings.ts',
    'crds/installation-settings.ts',
    'activator/config.ts',
    'api/config.ts',
    'api/accounting/metering/config.ts',
    'api/accounting/receipts/config.ts',
    'api/accounting/revenue/start-revenue.ts',
    'api/models/config.ts',
    'api/billing/database/prepare.ts',
    'api/tools/config.ts',
    'api/tools/fetch/guard.ts',
    'api/tools/engine/workers/remote/worker-server.ts',
    'api/apps/start.ts',
    'api/apps/notifications/mail.ts',
    'api/apps/sign-in/config.ts',
  ],
  render: () =>
    joinBlocks(
      'An empty variable counts as absent. An invalid variable prevents the start, and the message names every invalid one. Separate lists with commas, and write durations as `90s` or `20m`. The chart writes a variable that has a *chart value* from that value, and gives others itself where a pod needs them.',
      renderSection('All processes', 'Every process has this variable.', [logEnvironment]),
      renderSection('Operator', 'Processes started from `controller/main.ts`.', [operator]),
      renderSection('Registry proxy', 'Processes started from `controller/registry-proxy/main.ts`.', [registryProxy]),
      renderSection('Activator', 'Processes started from `activator/main.ts`.', [activator]),
      renderSection('API', 'Processes started from `api/main.ts`.', [api]),
      renderSection(
        'npm start',
        'The API alone, without a cluster. It also reads the variables of the next sections.',
        [alone],
      ),
      renderSection('Models and ledger', 'The API and `npm start`.', [models]),
      renderSection(
        'Migrations',
        'Processes started from `api/billing/database/prepare.ts`, before the API if its role does not own the schema.',
        [database],
      ),
      renderSection('Metering', 'The API.', [metering]),
      renderSection('Statements', 'The API.', [revenue]),
      renderSection('Shipper', 'Processes started from `api/accounting/metering/shipper/main.ts`, next to a gateway.', [
        shipper,
      ]),
      renderSection('Receipts', 'The API and `npm start`, which generates its own key if none is set.', [receipts]),
      renderSection('Tools', 'The API and `npm start`.', [tools, fetching]),
      renderSection(
        'Tool workers',
        'Processes started from `api/tools/engine/workers/remote/server-main.ts`. They have no secrets.',
        [workers],
      ),
      renderSection('Calls of hosted apps', 'The API and `npm start`.', [apps]),
      renderSection('Mails to authors', 'The API.', [mail]),
      renderSection('Sign-in of authors', 'The API.', [signIn]),
    ),
};
