// A finding as a line of the log.
import type { Finding } from '../../crds/hosted-app.ts';

export function findingLine(finding: Finding): string {
  const where = [finding.file, finding.line].filter((part) => part !== undefined).join(':');
  return `${finding.severity}: ${finding.rule}${where === '' ? '' : ` at ${where}`}: ${finding.message} ${finding.fix}`;
}
