// Reads durations like 90s, 5m or 1h30m.

/** Milliseconds of a duration in the form `[Nh][Nm][Ns]`. @throws RangeError for any other text. */
export function parseDuration(text: string): number {
  const match = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text);
  if (match === null || text === '') throw new RangeError(`not a duration: ${text}`);
  const [hours, minutes, seconds] = [match[1], match[2], match[3]].map((part) => Number(part ?? 0));
  return ((hours ?? 0) * 3600 + (minutes ?? 0) * 60 + (seconds ?? 0)) * 1000;
}
