// make_slides: what is in the outline, or in a model's JSON, is in the file as text that can be edited; and the file is
// sound.
import assert from 'node:assert/strict';
import JSZip from 'jszip';
import { afterAll, beforeAll, test } from 'vitest';
import { z } from 'zod';
import { fitSize, paginateLines, parseRuns } from '../../../../../../api/tools/builtin/make-slides/flow.ts';
import { createMakeSlidesTool, addPictures } from '../../../../../../api/tools/builtin/make-slides/make-slides.ts';
import type { ToolDependencies } from '../../../../../../api/tools/tool.ts';
import type { Tool } from '../../../../../../api/tools/tool.ts';
import { Problem, type ProblemType } from '../../../../../../lib/problem.ts';
import { runTool, toolContext } from '../../../../../support/tools/context.ts';
import {
  maxTokens,
  readPrompt,
  createAnswer,
  startModelLab,
  type ModelLab,
} from '../../../../../support/tools/model-lab.ts';
import { readOutline } from '../../../../../../api/tools/builtin/make-slides/outline.ts';
import { fetchFailed, urlRefused } from '../../../../../../api/tools/problems.ts';
import { toolBusy } from '../../../../../../api/tools/problems.ts';
import { createContext, createServices } from '../../../../../support/tools/call.ts';

const written = JSON.stringify({
  title: 'Tea',
  subtitle: 'A leaf',
  slides: [
    {
      layout: 'bullets',
      title: 'Origins',
      bullets: ['From **Yunnan**', { text: 'by river', level: 1 }],
      notes: 'Show the map.',
    },
    { layout: 'quote', quote: 'Tea is the taste of my land.', author: 'Somebody' },
  ],
});

let lab: ModelLab;
let tool: Tool;
beforeAll(async () => {
  let broken = 0;
  lab = await startModelLab({
    models: {
      'alpha-v4-flash': createAnswer(`Here you are:\n\`\`\`json\n${written}\n\`\`\``),
      'beta-K3': (response, asked, closed) => {
        broken += 1;
        return createAnswer(broken === 1 ? '{"title": "Tea", "slides": [{"layout": "pie"}]}' : written)(
          response,
          asked,
          closed,
        );
      },
      'gamma5.2': createAnswer('I would rather not.'),
    },
  });
  tool = createMakeSlidesTool({ catalog: lab.catalog, maxTokens } as ToolDependencies);
});
afterAll(() => lab.stop());

const slug =
  (expected: string) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.type.slug === expected;

/** What is in a file: text of each slide by paragraph, and of its notes. */
async function contents(bytes: Uint8Array): Promise<{ slides: string[][]; notes: string[]; xml: string[] }> {
  const archive = await JSZip.loadAsync(bytes);
  const read = async (folder: string, name: string): Promise<string[]> => {
    const count = Object.keys(archive.files).filter((file) =>
      new RegExp(`^ppt/${folder}/${name}\\d+\\.xml$`).test(file),
    ).length;
    return Promise.all(
      [...Array(count).keys()].map(
        async (index) => archive.file(`ppt/${folder}/${name}${index + 1}.xml`)?.async('string') ?? '',
      ),
    );
  };
  const xml = await read('slides', 'slide');
  const paragraphs = (text: string): string[] =>
    Array.from(text.matchAll(/<a:p>(.*?)<\/a:p>/gs), ([, inner = '']) =>
      Array.from(inner.matchAll(/<a:t>(.*?)<\/a:t>/gs), ([, said = '']) => said).join(''),
    ).filter((said) => said !== '');
  return {
    xml,
    slides: xml.map(paragraphs),
    notes: (await read('notesSlides', 'notesSlide')).map((text) => paragraphs(text)[0] ?? ''),
  };
}

const outline = `# Container **shipping** & trade
From 1956 to today

## Where it began
- In 1956 the *Ideal X* sailed with 58 containers, see [more](https://example.com/a?b=1&c=2)
  - Loading fell < $0.16
    - third
- [no](javascript:alert(1))

Notes: Speak slowly.

## Against each other
### Before
- Weeks
### After
- Hours

# The figures

## By decade
| Decade | TEU |
|---|--:|
| 1970s | 2,400 |

## A word
> I don't have much nostalgia.
> — Malcom McLean
`;

test('turns an outline into slides of every kind with real text, without a model', async () => {
  const { result, artifact } = await runTool(tool, { outline });
  const { slides } = z.object({ slides: z.array(z.object({ layout: z.string(), title: z.string() })) }).parse(result);
  assert.deepEqual(
    slides.map(({ layout, title }) => `${layout}: ${title}`),
    [
      'title: Container shipping & trade',
      'bullets: Where it began',
      'two_columns: Against each other',
      'section: The figures',
      'table: By decade',
      'quote: A word',
    ],
  );
  assert.deepEqual(
    [artifact?.fileName, artifact?.mediaType],
    ['container-shipping-trade.pptx', 'application/vnd.openxmlformats-officedocument.presentationml.presentation'],
  );
  const { slides: texts, notes, xml } = await contents(artifact?.bytes ?? new Uint8Array());
  assert.deepEqual(texts, [
    ['Container shipping &amp; trade', 'From 1956 to today'],
    [
      'Where it began',
      'In 1956 the Ideal X sailed with 58 containers, see more',
      'Loading fell &lt; $0.16',
      'third',
      'no',
      '2',
    ],
    ['Against each other', 'Before', 'Weeks', 'After', 'Hours', '3'],
    ['The figures'],
    ['By decade', 'Decade', 'TEU', '1970s', '2,400', '5'],
    ['A word', '“I don&apos;t have much nostalgia.”', '— Malcom McLean', '6'],
  ]);
  assert.equal(notes[1], 'Speak slowly.');
  assert.match(xml[4] ?? '', /<a:tbl>/);
  assert.doesNotMatch(xml.join(''), /javascript/);
  // PowerPoint takes a paragraph for damaged whose properties are not its first child, and its only ones.
  for (const paragraph of xml.join('').matchAll(/<a:p>(.*?)<\/a:p>/gs))
    assert.ok((paragraph[1] ?? '').lastIndexOf('<a:pPr') <= 0, paragraph[1]);
});

test('continues an overfull slide on the next one, and loses nothing', async () => {
  const lines = Array.from({ length: 40 }, (_, index) => `Point ${index + 1} ${'and so on '.repeat(9)}`.trim());
  const { artifact } = await runTool(tool, {
    outline: `## Much\n${lines.map((text) => `- ${text}`).join('\n')}`,
    theme: 'dark',
  });
  const { slides } = await contents(artifact?.bytes ?? new Uint8Array());
  assert.ok(slides.length > 3);
  assert.deepEqual(
    slides.flat().filter((text) => text.startsWith('Point')),
    lines,
  );
  assert.match(slides[1]?.[0] ?? '', /^Much \(1\/\d\)$/);
});

test('lets a model write on a topic, retries once if its JSON is wrong, then rejects', async () => {
  const models = lab.spender();
  const { result, artifact } = await runTool(
    tool,
    { topic: 'Tea', slides: 2, language: 'German', audience: 'children' },
    toolContext({ models }),
  );
  assert.deepEqual([result['title'], result['model'], models.spending.calls], ['Tea', 'alpha-v4-flash', 1]);
  const asked = lab.router.asked.at(-1);
  assert.match(
    readPrompt(asked ?? assert.fail()),
    /<topic>\nTea\n<\/topic>\n\nThey are for: children\n\nWrite in German\.$/,
  );
  const { slides, notes } = await contents(artifact?.bytes ?? new Uint8Array());
  assert.deepEqual([slides[1], notes[1]], [['Origins', 'From Yunnan', 'by river', '2'], 'Show the map.']);
  const again = lab.spender();
  assert.equal(
    (await runTool(tool, { topic: 'Tea', model: 'beta-K3' }, toolContext({ models: again }))).result['title'],
    'Tea',
  );
  assert.equal(again.spending.calls, 2);
  assert.match(readPrompt(lab.router.asked.at(-1) ?? assert.fail()), /It is not what was asked for: slides\.0\.layout/);
  await assert.rejects(
    runTool(tool, { topic: 'Tea', model: 'gamma5.2' }, toolContext({ models: lab.spender() })),
    slug('tool-failed'),
  );
});

test('rejects what cannot become slides by name', async () => {
  for (const input of [{}, { topic: 'Tea', outline: '# Tea' }])
    await assert.rejects(runTool(tool, input), slug('invalid-request'));
  for (const bad of [
    'just words',
    '# Only a title',
    `## ${'x'.repeat(300)}\n- a`,
    Array.from({ length: 50 }, (_, index) => `## ${index}`).join('\n'),
  ]) {
    await assert.rejects(runTool(tool, { outline: bad }), slug('unprocessable'));
  }
  await assert.rejects(
    runTool(tool, { outline: `# T\n## Fine\n- a\n## Wide\n|${'a|'.repeat(9)}\n|${'-|'.repeat(9)}\n` }),
    /slide 2 \("Wide"\) has a table of more than 8 columns\. Leave columns out, or split the table/,
  );
  await assert.rejects(
    runTool(tool, { outline: Array.from({ length: 50 }, (_, index) => `## ${index}`).join('\n') }),
    (error) =>
      error instanceof Problem &&
      error.errors[0]?.field === 'outline' &&
      /it has 50 slides; the maximum is 40\. Combine slides/.test(error.message),
  );
});

test('turns inline marks into runs, shrinks text until it fits, then splits it into pages', () => {
  assert.deepEqual(parseRuns('a **b *c*** `d` [e](https://x.test/) <i>f</i> &amp; \\*'), [
    { text: 'a ' },
    { text: 'b ', bold: true },
    { text: 'c', bold: true, italic: true },
    { text: ' ' },
    { text: 'd', code: true },
    { text: ' ' },
    { text: 'e', link: 'https://x.test/' },
    { text: ' ' },
    { text: '<i>' },
    { text: 'f' },
    { text: '</i>' },
    { text: ' &amp; ' },
    { text: '*' },
  ]);
  const lines = Array.from({ length: 30 }, () => ({ text: 'word '.repeat(10), level: 0 }));
  const box = { width: 12, height: 5 };
  assert.equal(fitSize(lines.slice(0, 2), box, 24, 14), 24);
  assert.equal(fitSize(lines, box, 24, 14), undefined);
  assert.deepEqual(paginateLines(lines, box, 16).flat(), lines);
});

// Pictures of an outline

const pictureOutline =
  '# Deck\n## One\n- before\n\n![A map of the harbour](https://example.org/gone.png)\n\n- after\n## Two\n- fine';

function servicesThatFail(type: ProblemType): ReturnType<typeof createServices> {
  const fail = (): Promise<never> => Promise.reject(new Problem(type, 'example.org returned status 404.'));
  return createServices({ fetcher: { fetch: fail, get: fail, check: fail } });
}

test('replaces an unreachable picture with a placeholder and a warning', async () => {
  for (const type of [fetchFailed, urlRefused]) {
    const { deck, warnings } = await addPictures(
      readOutline(pictureOutline).deck,
      servicesThatFail(type),
      createContext(),
    );
    assert.equal(deck.slides.length, 2);
    assert.match(JSON.stringify(deck), /\[Picture not available: A map of the harbour\]/);
    assert.match(JSON.stringify(deck), /before.*after.*fine/);
    assert.deepEqual(warnings, [
      'Slide 1 ("One"): example.org returned status 404. A placeholder stands in its place.',
    ]);
  }
});

test('replaces an expired artifact with a placeholder', async () => {
  const services = createServices({ artifacts: { get: () => Promise.resolve(undefined) } });
  const expired = pictureOutline.replace('https://example.org/gone.png', 'AAAAAAAAAAAAAAAAAAAAAA');
  const { warnings } = await addPictures(readOutline(expired).deck, services, createContext());
  assert.match(warnings[0] ?? '', /Slide 1 \("One"\): .*expired.*placeholder/);
});

test('rejects the call on overload, to be retried, and does not treat it as a missing picture', async () => {
  await assert.rejects(
    addPictures(readOutline(pictureOutline).deck, servicesThatFail(toolBusy), createContext()),
    (error) => error instanceof Problem && error.type === toolBusy,
  );
});
