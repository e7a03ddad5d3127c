// Starts a real Gotenberg on loopback: compiled from its Go module, with Debian's Chromium and LibreOffice, and with
// the flags of the chart behind the guarded proxy.
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Guard, type GuardOptions } from '../../../api/tools/fetch/guard.ts';
import { startGuardProxy } from '../../../api/tools/fetch/proxy.ts';
import { getBinaryPath, buildPart } from '../../../localnode/binaries/build.ts';
import { paths } from '../../../localnode/paths.ts';
import { run } from '../../../localnode/shell.ts';
import { runExclusively } from '../exclusively.ts';
import { findFreePort } from '../free-port.ts';

const image = join(paths.root, 'localnode', 'images', 'gotenberg');
const chartFiles = join(import.meta.dirname, '../../../charts/moorage/files');

/** What it runs, as Debian packages them: the official image takes the same from there. */
const packages = [
  ['/usr/bin/chromium', 'chromium'],
  ['/usr/lib/libreoffice/program/libswlo.so', 'libreoffice-writer'],
  ['/usr/lib/libreoffice/program/libsclo.so', 'libreoffice-calc'],
  ['/usr/lib/libreoffice/program/libsdlo.so', 'libreoffice-impress'],
  ['/usr/bin/unoconv', 'unoconv'],
] as const;

export interface Gotenberg {
  readonly url: string;
  stop(): Promise<void>;
}

/** Starts it. Stop it at the end. `guard` is that of its proxy, which lets pages reach the test's own server. */
export async function startGotenberg(guard: GuardOptions, more: readonly string[] = []): Promise<Gotenberg> {
  const [program] = await runExclusively(() => Promise.all([compile(), installPackages()]));
  const folder = mkdtempSync(join(tmpdir(), 'moorage-gotenberg-'));
  const chromium = join(folder, 'chromium');
  copyFileSync(join(chartFiles, 'gotenberg-chromium'), chromium);
  chmodSync(chromium, 0o755);
  const proxy = await startGuardProxy({ guard: new Guard(guard), host: '127.0.0.1', port: 0 });
  const port = await findFreePort();
  const flags = [
    ...chartFlags(),
    `--chromium-proxy-server=${proxy.url}`,
    '--api-bind-ip=127.0.0.1',
    `--api-port=${port}`,
    ...more,
  ];
  // In a PID namespace of its own, whose end is the end of all its children. Gotenberg also ends every Chromium that it
  // sees.
  const child = spawn('unshare', ['--pid', '--fork', '--mount-proc', '--kill-child', program, ...flags], {
    cwd: folder,
    env: environment(folder, chromium),
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const atExit = (): void => {
    child.kill('SIGKILL');
  };
  process.once('exit', atExit);
  const url = `http://127.0.0.1:${port}`;
  await alive(url, child);
  return {
    url,
    async stop() {
      process.off('exit', atExit);
      const ended = once(child, 'exit');
      child.kill('SIGKILL');
      await ended;
      await proxy.close();
      rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
    },
  };
}

function chartFlags(): string[] {
  return readFileSync(join(chartFiles, 'gotenberg-flags'), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('--'));
}

/** It wants to find the programs that work on PDFs, and runs none of them to make one. */
function environment(folder: string, chromium: string): NodeJS.ProcessEnv {
  const unused = Object.fromEntries(
    ['QPDF', 'PDFTK', 'PDFCPU', 'EXIFTOOL'].map((name) => [`${name}_BIN_PATH`, '/bin/false']),
  );
  return {
    ...unused,
    PATH: '/usr/bin:/bin',
    HOME: folder,
    TMPDIR: folder,
    LANG: 'C.UTF-8',
    CHROMIUM_BIN_PATH: chromium,
    CHROMIUM_HYPHEN_DATA_DIR_PATH: folder,
    LIBREOFFICE_BIN_PATH: '/usr/lib/libreoffice/program/soffice.bin',
    UNOCONVERTER_BIN_PATH: join(image, 'unoconverter'),
    OTEL_TRACES_EXPORTER: 'none',
    OTEL_METRICS_EXPORTER: 'none',
    OTEL_LOGS_EXPORTER: 'none',
  };
}

async function installPackages(): Promise<void> {
  const missing = packages.filter(([file]) => !existsSync(file)).map(([, name]) => name);
  if (missing.length === 0) return;
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['update', '-q'], { env });
  await run('apt-get', ['install', '-q', '-y', '--no-install-recommends', ...missing], { env });
}

async function compile(): Promise<string> {
  await buildPart('gotenberg');
  return getBinaryPath('gotenberg', 'gotenberg');
}

async function alive(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`Gotenberg ended with ${child.exitCode}`);
    const answer = await fetch(`${url}/health`).catch(() => undefined);
    if (answer?.ok === true) return;
    await sleep(100);
  }
}
