// Prints a plan: for a person, or as one JSON object for a program.
import type { Finding } from '../../crds/hosted-app.ts';
import { formatFinding } from '../../controller/pipeline/message.ts';
import type { FolderPlan } from './plan-folder.ts';

/** One JSON object; a refusal has no strategy. */
export function asJson({ plan, path, findings, dockerfile, file, refused }: FolderPlan): string {
  return `${JSON.stringify({ refused, ...plan, path, findings, dockerfile, file }, null, 2)}\n`;
}

/** Plan, reasons and warnings, then the Dockerfile. */
export function asText(planned: FolderPlan): string {
  const { plan, path, findings, dockerfile, file } = planned;
  const said = findings.map((each: Finding) => formatFinding(each));
  if (plan === undefined) return ['This cannot be planned.', ...said, ''].join('\n');
  const what = plan.framework === undefined ? plan.strategy : `${plan.strategy}, ${plan.framework}`;
  return [
    `plan: ${what}`,
    `why:  ${plan.reason}`,
    ...(path === '.' ? [] : [`path: ${path}`]),
    ...(plan.port === undefined ? [] : [`port: ${plan.port}`]),
    ...said,
    '',
    dockerfile ?? `The Dockerfile of the repository is built: ${file ?? ''}`,
    '',
  ].join('\n');
}
