// One call of each of the 22 tools, for the table that `npm run show:tools` prints.
import { randomUUID } from 'node:crypto';

/** Without an API key, whoever has the name of a session has what is in it. */
export const memorySession = randomUUID();

/** Addresses of the pages and files that the calls name. */
export interface Site {
  readonly url: string;
}

export interface ShownCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** What belongs to no tool: session, wait. */
  readonly options?: Readonly<Record<string, string>>;
  /** What stands in for something that cannot be had on loopback. */
  readonly standIn?: string;
}

const chart = {
  $schema: 'https://vega.github.io/schema/vega-lite/v6.json',
  width: 320,
  height: 200,
  mark: 'bar',
  data: {
    values: [
      { year: '1956', ships: 1 },
      { year: '1966', ships: 12 },
      { year: '1976', ships: 48 },
    ],
  },
  encoding: { x: { field: 'year', type: 'ordinal' }, y: { field: 'ships', type: 'quantitative' } },
};

export function shownCalls({ url }: Site): readonly ShownCall[] {
  const words = 'words of the model';
  return [
    { tool: 'web_search', input: { query: 'container shipping', count: 3 }, standIn: 'SearXNG' },
    { tool: 'fetch_page', input: { url: `${url}/page.html` } },
    { tool: 'render_diagram', input: { source: 'ship -> quay -> crane: lifts', kind: 'd2', format: 'png' } },
    { tool: 'check_grammar', input: { text: 'Das ist ein Fehlerr.', language: 'de' } },
    { tool: 'transcribe_audio', input: { url: `${url}/spoken.mp3`, language: 'en' } },
    {
      tool: 'convert_to_pdf',
      input: { markdown: '# Packing list\n\n| box | holds |\n|---|---|\n| 1 | **lamps** |\n| 2 | ropes |\n' },
    },
    { tool: 'translate_text', input: { text: 'Ships in the harbour', to: 'German' }, standIn: words },
    { tool: 'ask_model', input: { prompt: 'Say: iron anchor' }, standIn: words },
    { tool: 'compare_models', input: { prompt: 'Say: strong chain' }, standIn: words },
    { tool: 'list_apps', input: {} },
    {
      tool: 'translate_pdf',
      input: { url: `${url}/columns.pdf`, to: 'German' },
      options: { wait: '60' },
      standIn: `${words}, layout model`,
    },
    {
      tool: 'deep_research',
      input: { question: 'When did container shipping begin?' },
      options: { wait: '60' },
      standIn: `${words}, SearXNG`,
    },
    {
      tool: 'make_slides',
      input: {
        outline:
          '# Container shipping\n## Beginnings\n- 1956: Ideal X\n- 58 containers\n## Today\n- 24,000 on one ship',
      },
    },
    { tool: 'memory', input: { action: 'set', key: 'home port', value: 'Hamburg' }, options: { s: memorySession } },
    { tool: 'screenshot', input: { url: `${url}/page.html`, width: 640, height: 360 } },
    { tool: 'ocr_image', input: { url: `${url}/letters.png` } },
    { tool: 'make_chart', input: { spec: chart, format: 'png' } },
    { tool: 'extract_pdf', input: { url: `${url}/columns.pdf` } },
    { tool: 'lookup_citation', input: { doi: '10.1038/171737a0' }, standIn: 'Crossref' },
    { tool: 'run_code', input: { code: '[n ** 2 for n in range(5)]', language: 'python' } },
    { tool: 'convert_image', input: { url: `${url}/letters.png`, format: 'webp', width: 200 } },
    { tool: 'validate_json', input: { schema: { type: 'object', required: ['port'] }, data: { ship: 'Ideal X' } } },
  ];
}
