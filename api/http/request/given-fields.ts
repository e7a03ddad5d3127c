// Fields of a query or a form by name.

/** One that was given more than once has all its values. */
export type RequestFields = Record<string, string | string[]>;

export function groupFields(given: URLSearchParams): RequestFields {
  return Object.fromEntries([...new Set(given.keys())].map((name) => [name, oneOrAll(given.getAll(name))]));
}

function oneOrAll(values: string[]): string | string[] {
  const [first] = values;
  return values.length === 1 && first !== undefined ? first : values;
}
