// Makes one of what several files say: of each thing the word of the first file that has one, variables of all.
import { authorLimits } from '../../../../crds/app-manifest.ts';
import type { Finding } from '../../../../crds/hosted-app.ts';
import type { Declaration, DeclaredVariable, DeclaredVolume } from './declaration.ts';

export interface Combined {
  readonly build: Declaration['build'] | undefined;
  readonly command: readonly string[] | undefined;
  readonly port: number | undefined;
  readonly healthPath: string | undefined;
  readonly env: readonly DeclaredVariable[];
  readonly volumes: readonly DeclaredVolume[];
  readonly services: NonNullable<Declaration['services']>;
}

/** The app's own address at another platform. */
const elsewhere = /\.(?:onrender\.com|fly\.dev|herokuapp\.com|railway\.app|vercel\.app|netlify\.app|hf\.space)\b/i;

export function combine(said: readonly Declaration[]): Combined {
  const first = <Value>(of: (declaration: Declaration) => Value | undefined): Value | undefined =>
    said.map(of).find((value) => value !== undefined && !(Array.isArray(value) && value.length === 0));
  const services = first((each) => each.services) ?? [];
  return {
    build: first((each) => each.build),
    command: first((each) => each.command),
    port: first((each) => each.port),
    healthPath: first((each) => each.healthPath),
    volumes: first((each) => each.volumes) ?? [],
    env: variablesOf(said, new Set(services.map(({ name }) => name))),
    services,
  };
}

/** Of all files; the first that names a variable says its value. */
function variablesOf(said: readonly Declaration[], services: ReadonlySet<string>): DeclaredVariable[] {
  const env = new Map<string, DeclaredVariable>();
  for (const each of said.flatMap((declaration) => declaration.env ?? []))
    if (!env.has(each.name) && isAboutOnly(each.value, services) && !elsewhere.test(each.value))
      env.set(each.name, each);
  return [...env.values()];
}

/** Whether every service that a value names is there. */
function isAboutOnly(value: string, names: ReadonlySet<string>): boolean {
  return [...value.matchAll(/\$\{\{services\.([-a-z0-9]{1,30})\./g)].every(([, name = '']) => names.has(name));
}

/** As many disks as an author may have: those that a platform file asks for, then those of the image. */
export function disks(
  declared: readonly DeclaredVolume[],
  ofImage: readonly DeclaredVolume[],
): { kept: DeclaredVolume[]; findings: Finding[] } {
  const all = [...declared, ...ofImage].filter(
    ({ name, path }, index, list) =>
      list.findIndex((each) => each.path === path || each.name === name) === index &&
      !list.some((each) => each.path !== path && path.startsWith(`${each.path}/`)),
  );
  const kept = all.slice(0, authorLimits.volumes.count);
  const left = all.slice(authorLimits.volumes.count).map(({ path }) => path);
  if (left.length === 0) return { kept, findings: [] };
  const what = `The app declares ${all.length} volumes; ${kept.length} get a disk. What is written to ${left.slice(0, 5).join(', ')} does not last.`;
  return {
    kept,
    findings: [
      {
        rule: 'data/too-many-volumes',
        severity: 'warning',
        message: what,
        fix: 'Choose the folders that have to last with run.volumes in moorage.yaml.',
      },
    ],
  };
}
