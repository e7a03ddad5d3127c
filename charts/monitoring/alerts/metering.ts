// Alerts about the counting of uses.
import type { AlertGroup } from '../alert.ts';

export const metering: AlertGroup = {
  name: 'moorage-metering',
  title: 'Metering',
  alerts: [
    {
      name: 'MoorageMeterGap',
      expr: 'max(delta(moorage_metering_requests_unaccounted{state="lost"}[1h])) > 0',
      for: '0m',
      severity: 'warning',
      summary: '{{ $value | humanize }} requests that a gateway counted were lost within an hour',
      meaning: 'Their records did not come. Uses, and the shares of authors, are short by them; statements name them.',
      runbook: [
        'See which gateway and when: `select * from metering.loss` in the database.',
        'Read what its shipper says: `kubectl -n moorage-gateway logs deploy/traefik -c shipper`. A full log volume, and a pod that was deleted while the API was away, are the usual causes.',
        'A record that comes later is counted all the same, and the loss is withdrawn.',
      ],
    },
    {
      name: 'MoorageMeterDifference',
      expr: 'max(abs(moorage_metering_requests_unaccounted{state="difference"})) > 0',
      for: '10m',
      severity: 'critical',
      summary: 'Requests counted by gateways and recorded uses differ by {{ $value }}, unexplained',
      meaning:
        'Neither missing nor lost: rows of uses were changed by hand, a restore was not whole, or there is a bug.',
      runbook: [
        'Compare run by run: `select * from metering.reconciliation where difference <> 0` in the database.',
        'Keep a copy of the database as it is (`pg_dump`) before anything is corrected.',
      ],
    },
  ],
};
