// `npm run show:dashboards -- [--prometheus URL] [--minutes N] [FOLDER]`: pictures of every dashboard with real data, of
// our own processes at work or of a Prometheus that runs. There is no Grafana in it: panels are drawn from the same queries.
import { mkdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dashboards } from '../../charts/monitoring/all.ts';
import { readCommandLine, parseWholeNumber } from '../../lib/command-line.ts';
import { openTab } from '../support/devtools.ts';
import {
  buildApps,
  faultBuild,
  goLive,
  makeCalls,
  reject,
  useApps,
  useUpQuota,
} from '../support/monitoring/activity.ts';
import { dashboardPage } from '../support/monitoring/dashboard-page.ts';
import { startLab } from '../support/monitoring/lab.ts';
import { createPrometheusClient, startPrometheus } from '../support/monitoring/prometheus.ts';
import { takePicture } from '../support/pages/views.ts';
import { navigate } from '../support/tab.ts';

const usage = `usage: npm run show:dashboards -- [--prometheus URL] [--minutes N] [FOLDER]

  --prometheus URL  the Prometheus to read from, such as http://localhost:9090 (default: one that scrapes our own
                    processes, which do something of everything for that long)
  --minutes N       how much time the panels show (default: 3)
  FOLDER            where to leave the pictures (default: moorage-dashboards in the temporary folder)`;

const { url, minutes, folder } = readCommandLine(
  { usage, options: { prometheus: { type: 'string' }, minutes: { type: 'string' } }, positionals: 1 },
  ({ values, positionals: [named] }) => ({
    url: values.prometheus,
    minutes: values.minutes === undefined ? 3 : parseWholeNumber('--minutes', values.minutes, { maximum: 10_000 }),
    folder: named ?? join(tmpdir(), 'moorage-dashboards'),
  }),
);

async function draw(from: string): Promise<number> {
  const end = Date.now() / 1000;
  const window = { start: end - minutes * 60, end, step: Math.max(1, Math.round((minutes * 60) / 90)) };
  const tab = await openTab();
  let faults = 0;
  try {
    await tab.send('Page.enable');
    await tab.send('Emulation.setDeviceMetricsOverride', {
      width: 1_480,
      height: 900,
      deviceScaleFactor: 1,
      mobile: false,
    });
    for (const dashboard of dashboards) {
      const { page, empty } = await dashboardPage(dashboard, createPrometheusClient(from), window);
      const file = join(folder, `${dashboard.name}.html`);
      writeFileSync(file, page);
      await navigate(tab, `file://${file}`);
      writeFileSync(join(folder, `${dashboard.name}.png`), await takePicture(tab));
      faults += empty.length;
      const said = empty.length === 0 ? 'every panel has data' : `no data: ${empty.join(', ')}`;
      process.stdout.write(`${`${dashboard.name}.png`.padEnd(28)} ${said}\n`);
    }
  } finally {
    await tab.close();
  }
  return faults;
}

/** Our own processes at work: quiet, then busy, with a router that breaks for a while and a quota that runs out. */
async function drawLab(): Promise<number> {
  const lab = await startLab({ api: { MOORAGE_FREE_QUOTA_USD: '0.02' } });
  const prometheus = await startPrometheus({ targets: lab.targets });
  try {
    const end = Date.now() + minutes * 60_000;
    let building = buildApps(lab);
    const kinds = [goLive, reject, goLive, faultBuild];
    for (let round = 0; Date.now() < end; round += 1) {
      lab.faults.isRouterBroken = round % 10 === 7;
      lab.faults.freeDisk = Math.max(0.25, lab.faults.freeDisk - 0.01);
      // Callers of one network have one quota.
      await makeCalls(lab, `203.${round % 250}.113.7`);
      await useApps(lab);
      if (round % 20 === 5) await useUpQuota(lab);
      const build = kinds[round % kinds.length];
      if (build !== undefined) building = building.then(() => build(lab, `app-${round}`));
      await sleep(2_000 * Math.random());
    }
    await building;
    return await draw(prometheus.url);
  } finally {
    await prometheus.stop();
    await lab.stop();
  }
}

mkdirSync(folder, { recursive: true });
const faults = url === undefined ? await drawLab() : await draw(url);
process.stdout.write(`${dashboards.length} pictures in ${folder}\n`);
process.exitCode = faults === 0 ? 0 : 1;
