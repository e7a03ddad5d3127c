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
  const ignored = new Set([...headOf(source).matchAll(settings)].map(([, name = '']) => name));
  const other = new Set(logged.filter((words) => !/icon/i.test(words)));
  return [
    ...clicksIn(source).map((name) => `What a click on ${name} does is left out: a picture runs no code.`),
    ...[...ignored].map((name) => `The setting ${name} is ignored: it cannot be changed here.`),
    ...(layout === undefined || laidOut.test(kind) ? [] : [`layout has no effect on diagrams of the kind ${kind}.`]),
    ...[...other].map((words) => `mermaid reports: ${words.slice(0, 300)}`),
    ...covered.map(
      ([one, two]) => `mermaid has laid out "${one.slice(0, 60)}" and "${two.slice(0, 60)}" over each other.`,
    ),
  ];
}

/** Nodes with a click that is no link. */
function clicksIn(source: string): string[] {
  const clicks = [...source.matchAll(/^[ \t]*(?:click|callback)[ \t]+("[^"]*"|\S+)[ \t]+(.*)$/gm)];
  return clicks.filter(([, , rest = '']) => !/https?:\/\/|mailto:/i.test(rest)).map(([, name = '']) => name);
}

/** Front matter and directives. */
function headOf(source: string): string {
  const front = /^\uFEFF?\s*---\r?\n[\s\S]*?\r?\n\s*---/.exec(source)?.[0] ?? '';
  return [front, ...(source.match(/%%\{[\s\S]*?\}%%/g) ?? [])].join('\n');
}
