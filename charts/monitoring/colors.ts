// Colours of series whose name says whether they are good or bad; all others have those of the palette.

/** By the name of a series. */
export const colors: Readonly<Record<string, string>> = {
  ...of('#56a64b', 'succeeded', 'live', 'answered', '2xx'),
  ...of('#c4162a', 'faulted', 'failed', '5xx', 'broken', 'unreachable', 'timeout', 'fault'),
  ...of('#ff9830', 'rejected', '4xx'),
  ...of('#8f8f8f', 'superseded', '3xx'),
};

function of(color: string, ...names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, color]));
}
