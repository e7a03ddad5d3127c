// Price lists for tests.

/** MOORAGE_PRICES with one version, in which a call of an app costs so much, USD. */
export function formatCallPrice(call: string): string {
  return JSON.stringify([{ version: 'test', from: '2026-01-01', announced: '2026-01-01', call }]);
}
