// Plots: scales with round ticks, names that cover nothing, and drawings that say what they show.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import {
  placeLabels,
  renderLatencyPlot,
  selectTimed,
  selectDrawable,
  renderScatterPlot,
  createLinearScale,
  createLogarithmicScale,
  chooseScale,
} from '../../../../api/pages/plots.ts';
import { createVisit } from '../../../../api/pages/visit.ts';
import { baseUrl } from '../../../support/api/sample.ts';
import { benchDetails } from '../../../support/pages/records.ts';

test('chooses round ticks that include the highest value', () => {
  assert.deepEqual(createLinearScale(1, [0, 100]).ticks, [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(createLinearScale(11.88, [0, 100]).ticks, [0, 2.5, 5, 7.5, 10, 12.5]);
  assert.deepEqual(createLinearScale(7, [0, 100], { count: 3 }).ticks, [0, 2.5, 5, 7.5]);
  assert.deepEqual(createLinearScale(7, [0, 100], { count: 3, isWhole: true }).ticks, [0, 3, 6, 9]);
  assert.deepEqual(createLinearScale(60, [0, 100], { count: 3, isWhole: true }).ticks, [0, 20, 40, 60]);
  assert.deepEqual(createLogarithmicScale(0.0004, 0.03, [0, 100]).ticks, [0.0001, 0.001, 0.01, 0.1]);
  assert.deepEqual(createLogarithmicScale(0.002, 0.05, [0, 100]).ticks, [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1]);
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 1e-9, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 12 }),
      (values) => {
        const scale = chooseScale(values, [50, 500]);
        for (const value of values) {
          const at = scale.toCoordinate(value);
          assert.ok(at >= 50 - 1e-6 && at <= 500 + 1e-6, `${value} at ${at}`);
        }
        assert.ok(scale.ticks.length >= 2 && scale.ticks.length <= 20, `${scale.ticks.length} ticks`);
        const places = scale.ticks.map((tick) => scale.toCoordinate(tick));
        assert.deepEqual(
          places,
          [...places].sort((a, b) => a - b),
        );
      },
    ),
  );
});

test('places a higher value further along', () => {
  for (const scale of [createLinearScale(10, [0, 1]), createLogarithmicScale(0.001, 10, [0, 1])]) {
    assert.ok(scale.toCoordinate(0.01) < scale.toCoordinate(0.5) && scale.toCoordinate(0.5) < scale.toCoordinate(9));
  }
});

test('places the names of near points without overlap', () => {
  const points = ['one', 'two', 'three'].map((name, index) => ({ name, x: 200 + index * 3, y: 100 + index * 2 }));
  const labels = placeLabels(points, 500);
  const boxes = labels.map(({ name, x, y, anchor }) => {
    const left = anchor === 'start' ? x : x - name.length * 6.6;
    return { left, right: left + name.length * 6.6, y };
  });
  for (const [index, a] of boxes.entries())
    for (const b of boxes.slice(index + 1))
      assert.ok(a.right <= b.left || b.right <= a.left || Math.abs(a.y - b.y) >= 14, JSON.stringify(labels));
});

const models = benchDetails[0]?.models ?? [];
const visit = createVisit({ baseUrl, isServed: () => true }, { path: '/bench/x', query: {}, headers: new Headers() });

test('draws a dot for every model with a success, and for no other', () => {
  const dots = selectDrawable(models);
  assert.deepEqual(
    dots.map(({ name }) => name),
    ['alpha-v4-flash', 'beta-K3', 'gamma5.2', 'delta-5.5'],
  );
  const svg = renderScatterPlot(dots, visit).toString();
  assert.equal([...svg.matchAll(/class="dot"/g)].length, 4);
  assert.equal([...svg.matchAll(/class="whisker"/g)].length, 4);
  assert.match(svg, /<title id="scatter-title">Quality against cost per success<\/title>/);
  assert.match(svg, /role="img"\s+aria-labelledby="scatter-title scatter-about"/);
  assert.doesNotMatch(svg, /style=|NaN|Infinity|undefined/);
});

test('draws a latency row for each model that was timed', () => {
  const svg = renderLatencyPlot(selectTimed(models), visit).toString();
  assert.equal([...svg.matchAll(/class="dot"/g)].length, 5);
  assert.doesNotMatch(svg, /style=|NaN|Infinity|undefined/);
});
