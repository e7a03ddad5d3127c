// A core of the corpora of charts and decks: each is right, or refused by name. All of them: npm run show:charts.
import assert from 'node:assert/strict';
import { afterAll, describe, test } from 'vitest';
import { createMakeChartTool } from '../../../api/tools/builtin/make-chart/make-chart.ts';
import { chartsOf, judge, kinds } from '../../corpus/charts/judge.ts';
import { deckCases, judgeDeck, slidesToolWith } from '../../corpus/decks/judge.ts';
import { createPatientWorkers, createServices } from '../../support/tools/call.ts';

const workers = createPatientWorkers();
afterAll(() => workers.close());

/** Drawn in a browser; or like others. */
const left = new Set(['Devanagari', 'Thai', 'emoji']);
const gallery = new Set(['bar_grouped', 'layer_candlestick', 'layer_likert', 'trellis_barley', 'waterfall_chart']);

describe.each(kinds)('charts: %s', (kind) => {
  const tool = createMakeChartTool(createServices({ workers }));
  const charts = chartsOf(kind).filter(({ name }) => (kind === 'gallery' ? gallery.has(name) : !left.has(name)));
  test.each(charts.map((each) => [each.name, each] as const))('%s', async (_, each) => {
    const { verdict, words } = await judge(tool, each);
    assert.equal(verdict, each.refused === undefined ? 'right' : 'refused, rightly', words);
  });
});

describe('decks', () => {
  const tool = slidesToolWith(workers);
  test.each(deckCases.map((each) => [each.name, each] as const))('%s', async (_, each) => {
    const { verdict, words } = await judgeDeck(tool, each);
    assert.equal(verdict, each.refused === undefined ? 'right' : 'refused, rightly', words);
  });
});
