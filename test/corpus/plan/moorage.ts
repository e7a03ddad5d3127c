// What our planner says of a folder.
import { join } from 'node:path';
import { planFolder } from '../../../cli/plan/plan-folder.ts';
import { readDockerfile } from './dockerfile.ts';
import { refusal, type Planned } from './planned.ts';
import { expand } from './scripts.ts';

const planner = 'moorage';

export function moorage(root: string): Planned {
  const { refused, path, findings, plan, dockerfile, file } = planFolder(root);
  const errors = findings
    .filter(({ severity }) => severity === 'error')
    .map(({ rule, message }) => `${rule}: ${message}`);
  if (refused || plan === undefined) return refusal(planner, errors.join(' ') || 'refused without a word');
  const { start, build, serves } = readDockerfile(dockerfile ?? '');
  return {
    planner,
    refused: false,
    why: plan.reason,
    strategy: serves === undefined ? plan.strategy : 'static',
    folder: path,
    start: expand(start, root, path),
    build: build.map(({ command, folder }) => expand(command, root, join(path, folder))).join('\n'),
    serves,
    port: plan.port,
    dockerfile: file,
  };
}
