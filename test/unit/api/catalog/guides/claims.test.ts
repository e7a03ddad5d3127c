// Claims against evidence that supports them, contradicts them, and decides nothing.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import type { Benchmark } from '../../../../../api/catalog/guides/benchmark.ts';
import { checkClaim, type Verdict } from '../../../../../api/catalog/guides/claims.ts';
import type { Claim } from '../../../../../api/catalog/guides/source.ts';
import { sampleBenchmark, sampleModel } from '../../../../support/catalog/benchmark.ts';

const says = { says: 'It is so', says_zh: '确实如此' };
const bestValue: Claim = { kind: 'best-value', ...says };
const cheaper: Claim = { kind: 'cheaper-as-good', margin: 0.1, ...says };
const reliable: Claim = { kind: 'reliable', at_least: 0.8, ...says };

const cheap = sampleModel('cheap', { passed: 12, n: 15, usd: 0.002 });
const dear = sampleModel('dear', { passed: 14, n: 15, usd: 0.2 });
type Pair = Benchmark['pairs'][number];
const gap = (low: number, high: number, verdict: Pair['verdict']): Pair => ({
  a: 'cheap',
  b: 'dear',
  verdict,
  interval: [low, high],
});

const cases: readonly (readonly [name: string, claim: Claim, benchmark: Benchmark, verdict: Verdict, says: RegExp])[] =
  [
    [
      'the lowest cost per success',
      bestValue,
      sampleBenchmark([dear, cheap]),
      'supported',
      /^cheap \(12 of 15 runs passed, \$0\.002 per run\)$/,
    ],
    [
      'a model that is cheap a run and dear a success is not the best',
      bestValue,
      sampleBenchmark([sampleModel('lucky', { passed: 1, n: 200, usd: 0.002 }), dear]),
      'supported',
      /^dear/,
    ],
    [
      'no run passed',
      bestValue,
      sampleBenchmark([sampleModel('cheap', { passed: 0, n: 5, usd: 0.1 })]),
      'undecided',
      /no model/,
    ],
    [
      'a model without a result for every task is no winner',
      bestValue,
      { ...sampleBenchmark([cheap]), tasks: [{}, {}] },
      'undecided',
      /no model/,
    ],
    [
      'the named model is the best',
      { ...bestValue, model: 'cheap' },
      sampleBenchmark([dear, cheap]),
      'supported',
      /^cheap/,
    ],
    [
      'another one is the best',
      { ...bestValue, model: 'dear' },
      sampleBenchmark([dear, cheap]),
      'contradicted',
      /^cheap/,
    ],
    [
      'the named model was not measured',
      { ...bestValue, model: 'new' },
      sampleBenchmark([dear, cheap]),
      'undecided',
      /^cheap/,
    ],
    [
      'as good within the margin',
      cheaper,
      sampleBenchmark([dear, cheap], [gap(-0.09, 0.2, 'tie')]),
      'supported',
      /^cheap .* against dear /,
    ],
    [
      'as good, with the pair the other way round',
      cheaper,
      sampleBenchmark([dear, cheap], [{ a: 'dear', b: 'cheap', verdict: 'tie', interval: [-0.2, 0.09] }]),
      'supported',
      /^cheap/,
    ],
    [
      'worse',
      cheaper,
      sampleBenchmark([dear, cheap], [gap(-0.4, -0.1, 'b')]),
      'contradicted',
      /^cheap .* against dear /,
    ],
    [
      'a tie of few runs is not as good',
      cheaper,
      sampleBenchmark([dear, cheap], [gap(-0.5, 0.3, 'tie')]),
      'undecided',
      /^cheap/,
    ],
    [
      'an interval that nobody could compute',
      cheaper,
      sampleBenchmark([dear, cheap], [{ ...gap(0, 0, 'tie'), interval: null }]),
      'undecided',
      /^cheap/,
    ],
    ['one model alone', cheaper, sampleBenchmark([dear]), 'undecided', /too few/],
    [
      'a model whose upstream was away is not compared',
      cheaper,
      sampleBenchmark([dear, sampleModel('away', { passed: 0, n: 0, outages: 15, usd: 0 })]),
      'undecided',
      /too few/,
    ],
    [
      'reliable',
      reliable,
      sampleBenchmark([cheap, sampleModel('sure', { passed: 60, n: 60, usd: 1, interval: [0.94, 1] })]),
      'supported',
      /^sure \(60 of 60/,
    ],
    [
      'not reliable',
      reliable,
      sampleBenchmark([sampleModel('weak', { passed: 5, n: 60, usd: 1, interval: [0.04, 0.18] })]),
      'contradicted',
      /^weak/,
    ],
    [
      'perhaps reliable',
      reliable,
      sampleBenchmark([sampleModel('few', { passed: 3, n: 3, usd: 1, interval: [0.44, 1] })]),
      'undecided',
      /^few/,
    ],
  ];

test.each(cases)('%s', (_name, claim, benchmark, verdict, figures) => {
  const check = checkClaim(claim, benchmark);
  assert.equal(check.verdict, verdict);
  assert.match(check.en, figures);
  assert.match(check.zh, /\p{Script=Han}/u);
});
