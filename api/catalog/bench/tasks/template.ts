// Templates: {{name}} in the strings of a document is replaced by a value.

export type Values = Readonly<Record<string, unknown>>;

const slot = /\{\{ ?([a-z][a-z0-9_.]{0,60}) ?\}\}/g;
const wholeSlot = /^\{\{ ?([a-z][a-z0-9_.]{0,60}) ?\}\}$/;

/** A text with its values; one that is not text is written as JSON. @throws Error for a name without a value */
export function renderText(template: string, values: Values): string {
  return template.replaceAll(slot, (_whole, name: string) => {
    const value = valueOf(name, values);
    return typeof value === 'string' ? value : JSON.stringify(value);
  });
}

/** A document with its values. A string that is one slot and nothing else becomes the value itself, of whatever type. */
export function render(template: unknown, values: Values): unknown {
  if (typeof template === 'string') {
    const name = wholeSlot.exec(template)?.[1];
    return name === undefined ? renderText(template, values) : valueOf(name, values);
  }
  if (Array.isArray(template)) return template.map((part: unknown) => render(part, values));
  if (typeof template !== 'object' || template === null) return template;
  return Object.fromEntries(Object.entries(template).map(([name, part]) => [name, render(part, values)]));
}

function valueOf(name: string, values: Values): unknown {
  if (!Object.hasOwn(values, name))
    throw new Error(`the template names {{${name}}}; there are: ${Object.keys(values).sort().join(', ')}`);
  return values[name];
}
