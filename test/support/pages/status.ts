// Statuses of apps that a page has much to show of.
import type { HostedAppStatus } from '../../../crds/hosted-app.ts';

/** Rejected by the review, with findings and an earlier build. */
export const rejectedStatus: HostedAppStatus = {
  phase: 'Rejected',
  since: '2026-05-01T10:00:00Z',
  source: { commit: 'b'.repeat(40) },
  rejection: {
    rule: 'secrets/aws-access-token',
    file: 'config/settings.py',
    line: 12,
    message: 'An AWS access key stands in the source code.',
    fix: 'Revoke the key, remove it from the history, and read it from an environment variable.',
    log: 'reviewing 214 files\nconfig/settings.py:12: secrets/aws-access-token',
  },
  findings: [
    {
      rule: 'secrets/aws-access-token',
      severity: 'error',
      file: 'config/settings.py',
      line: 12,
      message: 'An AWS access key stands in the source code.',
      fix: 'Revoke the key, and read it from an environment variable.',
    },
    {
      rule: 'license/custom',
      severity: 'warning',
      file: 'LICENSE',
      message: 'The license is none of those that are known.',
      fix: 'Choose a license from the SPDX list.',
    },
  ],
  history: [
    {
      number: 1,
      job: 'chat-1',
      commit: 'a'.repeat(40),
      reason: 'first commit',
      result: 'Rejected',
      message: 'An AWS access key stands in the source code.',
      startedAt: '2026-05-01T09:55:00Z',
      finishedAt: '2026-05-01T10:00:00Z',
    },
  ],
};
