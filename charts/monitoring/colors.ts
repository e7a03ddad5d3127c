// Colours of series whose name says whether they are good or bad; all others have those of the palette.

/** By the name of a series. */
export const colors: Readonly<Record<string, string>> = {
  ...assignColor('#56a64b', 'succeeded', 'live', 'answered', '2xx'),
  ...assignColor('#c4162a', 'faulted', 'failed', '5xx', 'broken', 'unreachable', 'timeout', 'fault'),
  ...assignColor('#ff9830', 'rejected', '4xx'),
  ...assignColor('#8f8f8f', 'superseded', '3xx'),
};

function assignColor(color: string, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, color]));
}
