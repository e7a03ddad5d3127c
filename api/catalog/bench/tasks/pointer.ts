// Finds a value in JSON by a pointer; after "#" it goes on inside of a text that is JSON itself.

/** The value, or undefined where there is none. */
export function valueAt(document: unknown, pointer: string): unknown {
  const [outer = '', inner] = pointer.split('#');
  const found = partAt(document, outer);
  if (inner === undefined || typeof found !== 'string') return inner === undefined ? found : undefined;
  return partAt(jsonOf(found), inner);
}

function partAt(document: unknown, pointer: string): unknown {
  let part = document;
  for (const escaped of pointer.split('/').slice(1)) {
    const name = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof part !== 'object' || part === null || !Object.hasOwn(part, name)) return undefined;
    part = (part as Record<string, unknown>)[name];
  }
  return part;
}

/** The value of JSON text, or undefined where it is none. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
