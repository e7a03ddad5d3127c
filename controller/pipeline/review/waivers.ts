// Applies what the operator of the installation waives for this app: the finding stays, as a warning with the reason.
import type { Finding, Waiver } from '../../../crds/hosted-app.ts';
import { head, oneLine } from '../text.ts';

const fixWaived =
  'The operator of this installation waived this for the app; the reason is theirs. No change is needed.';

/** The findings with these waivers applied. A waiver that matches none is said, since it may name the wrong file. */
export function applyWaivers(findings: readonly Finding[], waivers: readonly Waiver[]): Finding[] {
  const waived = findings.map((finding) => {
    const found = waivers.find((waiver) => matches(waiver, finding));
    return found === undefined ? finding : soften(finding, found);
  });
  const unused = waivers.filter((waiver) => !findings.some((finding) => matches(waiver, finding)));
  return [...waived, ...unused.map(unusedFinding)];
}

function matches({ rule, file }: Waiver, finding: Finding): boolean {
  return rule === finding.rule && (file === undefined || file === finding.file);
}

function soften(finding: Finding, { reason }: Waiver): Finding {
  const message = `Waived: ${head(oneLine(reason), 600)} (${finding.message})`;
  return { ...finding, severity: 'warning', message, fix: fixWaived };
}

function unusedFinding({ rule, file }: Waiver): Finding {
  const where = file === undefined ? '' : ` in ${head(oneLine(file), 300)}`;
  return {
    rule: 'waivers/unused',
    severity: 'warning',
    message: `The waiver of ${rule}${where} matches no finding of this commit.`,
    fix: 'The operator of this installation can remove it from spec.review.waivers, or correct its rule and file.',
  };
}
