// A day (UTC) to reconcile, as the time that it covers.
export interface Day {
  /** Like 2026-11-23. */
  readonly day: string;
  /** Its beginning, and its end or now. */
  readonly from: Date;
  readonly to: Date;
  readonly isComplete: boolean;
}

const dayMs = 86_400_000;

/** A day as it is at a time. @throws RangeError for what is no day, or has not begun */
export function dayAt(day: string, now: Date): Day {
  const from = new Date(`${day}T00:00:00.000Z`);
  if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(from.getTime()) || !from.toISOString().startsWith(day))
    throw new RangeError(`"${day}" is not a day: write it as 2026-11-23`);
  if (from > now) throw new RangeError(`${day} has not begun yet (UTC)`);
  const end = new Date(from.getTime() + dayMs);
  return { day, from, to: end < now ? end : now, isComplete: end <= now };
}

/** The day (UTC) of a time. */
export function dayOf(time: Date): string {
  return time.toISOString().slice(0, 10);
}
