// Writes a time as Kubernetes does: RFC 3339 in UTC, whole seconds.

/** The time, cut to the second. */
export function timestamp(date: Date): string {
  return `${date.toISOString().slice(0, 19)}Z`;
}
