// When a rejected app can be retried: each retry of the same commit waits twice as long as the one before.
import { annotations } from '../../../crds/names.ts';
import type { App } from '../hosted-apps.ts';

const dayMs = 86_400_000;

/**
 * The time from which the app can be retried, in milliseconds since the epoch; 0 when it never was. It is counted from
 * the last retry, or from the end of what came of it: `firstMs`, doubling, at most a day. Another commit starts afresh.
 */
export function retriableFrom(app: App, firstMs: number): number {
  const asked = time(app.metadata.annotations?.[annotations.rebuild]);
  if (asked === 0) return 0;
  const history = app.status?.history ?? [];
  const commit = app.status?.source?.commit;
  const other = history.findIndex((entry) => entry.commit !== commit);
  const runs = other < 0 ? history : history.slice(0, other);
  // The first run was no retry.
  const retries = Math.max(1, runs.length - 1);
  const ended = Math.max(asked, time(runs[0]?.finishedAt));
  return ended + Math.min(dayMs, firstMs * 2 ** (retries - 1));
}

function time(text: string | undefined): number {
  const value = Date.parse(text ?? '');
  return Number.isNaN(value) ? 0 : value;
}
