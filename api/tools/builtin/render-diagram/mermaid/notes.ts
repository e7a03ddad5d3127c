// What mermaid leaves out of a picture without a word: said as warnings.

export interface DrawnAs {
  /** mermaid's own name of the kind of diagram. */
  readonly kind: string;
  readonly layout: string | undefined;
  /** What mermaid logged as errors. */
  readonly logged: readonly string[];
  /** Texts that lie on others. */
  readonly covered: readonly (readonly [string, string])[];
}

/** Kinds that a layout engine lays out; the others have one layout of their own. */
const laidOut = /^(flowchart|class|state|er|requirement|mindmap|swimlane|usecase|agentflow)/i;

/** Settings that a source cannot change; mermaid ignores them. */
const settings =
  /["']?\b(secure|securityLevel|startOnLoad|maxTextSize|suppressErrorRendering|maxEdges|deterministicIds|deterministicIDSeed|dompurifyConfig|logLevel|htmlLabels)\b["']?\s*:/g;

export function notesOn(source: string, { kind, layout, logged, covered }: DrawnAs): string[] {
  const notes: string[] = [];
  const clicks = [...source.matchAll(/^[ \t]*(?:click|callback)[ \t]+("[^"]*"|\S+)[ \t]+(.*)$/gm)];
  for (const [, name = '', rest = ''] of clicks)
    if (!/https?:\/\/|mailto:/i.test(rest))
      notes.push(`What a click on ${name} does is left out: a picture runs no code.`);
  const ignored = new Set([...headOf(source).matchAll(settings)].map(([, name = '']) => name));
  for (const name of ignored) notes.push(`The setting ${name} is ignored: it cannot be changed here.`);
  if (layout !== undefined && !laidOut.test(kind)) notes.push(`layout has no effect on diagrams of the kind ${kind}.`);
  for (const words of new Set(logged)) if (!/icon/i.test(words)) notes.push(`mermaid reports: ${words.slice(0, 300)}`);
  for (const [one, other] of covered)
    notes.push(`mermaid has laid out "${one.slice(0, 60)}" and "${other.slice(0, 60)}" over each other.`);
  return notes;
}

/** Front matter and directives. */
function headOf(source: string): string {
  const front = /^\uFEFF?\s*---\r?\n[\s\S]*?\r?\n\s*---/.exec(source)?.[0] ?? '';
  return [front, ...(source.match(/%%\{[\s\S]*?\}%%/g) ?? [])].join('\n');
}
