// Runs gitleaks on a folder with a configuration of ours, and reads its report.
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { childEnvironment } from '../../../../../lib/child-environment.ts';
import { Fault } from '../../../outcome.ts';
import { run } from '../../../process.ts';
import { oneLine, tail } from '../../../text.ts';

const report = z.array(
  z.object({
    RuleID: z.string(),
    Description: z.string(),
    StartLine: z.int(),
    EndLine: z.int(),
    File: z.string(),
    /** The secret itself: judged, never shown. */
    Secret: z.string(),
  }),
);
export type Leak = z.infer<typeof report>[number];

const leaksFound = 3;
const timeoutSeconds = 300;

export interface Scan {
  /** The folder that is scanned; paths in the report begin with it as it is written. */
  readonly folder: string;
  /** Where gitleaks runs. */
  readonly cwd: string;
  /** Folder for configuration and report, which is removed. */
  readonly notes: string;
  /** Text of the configuration. */
  readonly config: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * What gitleaks finds. From the folder that it is given it always takes a .gitleaksignore, so that must be one without;
 * the configuration is ours, and comments that ask for silence are not heard: what the repository allows is judged by
 * us.
 * @throws Fault
 */
export async function gitleaks({ folder, cwd, notes, config, signal }: Scan): Promise<Leak[]> {
  await mkdir(notes, { recursive: true });
  const [settings, output] = [join(notes, 'gitleaks.toml'), join(notes, 'report.json')];
  await writeFile(settings, config);
  const options = {
    '--config': settings,
    '--gitleaks-ignore-path': join(notes, 'none'),
    '--report-format': 'json',
    '--report-path': output,
    '--exit-code': String(leaksFound),
    '--log-level': 'error',
    '--timeout': String(timeoutSeconds),
  };
  const flags = ['--ignore-gitleaks-allow', '--no-banner', '--no-color'];
  try {
    const result = await run('gitleaks', ['dir', folder, ...flags, ...Object.entries(options).flat()], {
      env: childEnvironment(),
      cwd,
      ...(signal === undefined ? {} : { signal }),
    });
    if (result.code !== 0 && result.code !== leaksFound)
      throw new Fault(`gitleaks failed: ${oneLine(tail(result.stderr, 500))}`);
    return report.parse(JSON.parse(await readFile(output, 'utf8')));
  } finally {
    await rm(notes, { recursive: true, force: true });
  }
}
