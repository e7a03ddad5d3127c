// A list as PostgreSQL writes an array. The drivers do it too, but look at each element in many ways; of long lists that
// is most of what a statement takes here.

export type ArrayElement = string | number | bigint | undefined;

/** Like `{1,2,NULL}` or `{"a","b \"c\""}`. */
export function arrayLiteral(elements: readonly ArrayElement[]): string {
  return `{${elements.map(elementOf).join(',')}}`;
}

function elementOf(element: ArrayElement): string {
  if (element === undefined) return 'NULL';
  if (typeof element !== 'string') return String(element);
  return `"${/["\\]/.test(element) ? element.replaceAll(/["\\]/g, '\\$&') : element}"`;
}
