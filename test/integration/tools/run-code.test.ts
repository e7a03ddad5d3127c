// run_code runs code, reports its errors, and gives it nothing but the language.
import assert from 'node:assert/strict';
import { runInThisContext } from 'node:vm';
import { afterAll, describe, test } from 'vitest';
import { z } from 'zod';
import { call, isProblem } from '../../support/tools/call.ts';
import { codeRunner } from '../../support/tools/run-code.ts';

const { tool, run, runAsCaller, runBriefly, close } = codeRunner();
afterAll(() => close());

test('returns the value of the last expression, and logged output', async () => {
  const answer = await run(z.string().parse(tool.example.code));
  assert.deepEqual(
    { ...answer },
    {
      ok: true,
      value: 14,
      value_type: 'number',
      value_text: '14',
      logs: [{ level: 'log', text: 'squares [1,4,9]' }],
      truncated: false,
      error: null,
    },
  );
});

test('formats values as JSON', async () => {
  const cases: [string, unknown, string][] = [
    ['({a: [1, "two", null, undefined]})', { a: [1, 'two', null, null] }, 'object'],
    ['undefined', null, 'undefined'],
    ['1n << 70n', '1180591620717411303424', 'bigint'],
    ['({n: 10n})', { n: '10' }, 'object'],
    ['() => 1', null, 'function'],
    ['"\\u{1F600}"', '\u{1F600}', 'string'],
    ['NaN', null, 'number'],
    ['await Promise.resolve(5)', 5, 'number'],
    ['Promise.resolve({x: 1})', { x: 1 }, 'object'],
    ['const f = async () => { await null; return 7; }; f()', 7, 'number'],
    ['new Map([[1, new Set([2n])]])', [[1, ['2']]], 'object'],
    [
      '({when: new Date(0), bytes: new Uint8Array([1, 2]), why: new TypeError("x")})',
      { when: '1970-01-01T00:00:00.000Z', bytes: [1, 2], why: { name: 'TypeError', message: 'x' } },
      'object',
    ],
    [
      'const a = {n: 1}; a.self = a; a.map = new Map([["me", a]]); a',
      { n: 1, self: '[Circular]', map: [['me', '[Circular]']] },
      'object',
    ],
    ['const twice = {n: 1}; [twice, twice]', [{ n: 1 }, { n: 1 }], 'object'],
    ['return 5', 5, 'number'],
    ['for (const n of [1, 2]) { if (n === 2) return {n}; }\nnull.x', { n: 2 }, 'object'],
  ];
  for (const [code, value, type] of cases) {
    const answer = await run(code);
    assert.deepEqual(
      [answer.ok, answer.value, answer.value_type],
      [true, value, type],
      `${code} ${JSON.stringify(answer.error)}`,
    );
  }
});

test('shows values that JSON cannot represent', async () => {
  const shown = 'new Map([["a", new Set([1, 2n])]]), undefined, NaN, -0, () => 1, new Uint8Array([7]), new Date(0)';
  const text =
    '[Map(1) {"a" => Set(2) {1,2n}},undefined,NaN,-0,[Function (anonymous)],Uint8Array(1) [7],1970-01-01T00:00:00.000Z]';
  assert.equal((await run(`[${shown}]`)).value_text, text);
  assert.equal((await run(`console.log([${shown}])`)).logs[0]?.text, text);
});

test("provides JavaScript's usual globals, as Node does", async () => {
  const codes = [
    'const u = new URL("../x?a=1&b=2#h", "https://me:pw@example.com:8080/a/b/c"); u.searchParams.append("c", "ü &"); u.port = ""; [u.href, u.host, u.searchParams.get("b"), [...u.searchParams]]',
    '[...new TextEncoder().encode("é€\u{1F600}\ud800")]',
    'new TextDecoder("shift_jis").decode(new Uint8Array([0x83, 0x65]))',
    'atob(btoa("moor"))',
    '[...structuredClone(new Map([[1, new Set([new Date(0)])]])).get(1)][0].getTime()',
    'new Intl.NumberFormat("de-DE", {style: "currency", currency: "EUR"}).format(-1234567.891)',
    '(1234567.891).toLocaleString("en-IN") + 12345678901234567890n.toLocaleString("fr")',
    'new Date(0).toLocaleDateString("ja-JP", {dateStyle: "full", timeZone: "Asia/Tokyo"})',
    'new Intl.DateTimeFormat("en-US", {timeZone: "America/New_York", timeStyle: "long"}).formatToParts(new Date(0))',
    'new Intl.DateTimeFormat("de").formatRange(new Date(0), new Date(1e9))',
    '["z", "ä", "a"].sort(new Intl.Collator("sv").compare).concat(["z", "ä", "a"].sort((a, b) => a.localeCompare(b, "de")))',
    '[new Intl.PluralRules("pl").select(5), new Intl.RelativeTimeFormat("es").format(-3, "day"), new Intl.ListFormat("en").format(["a", "b", "c"])]',
    '[new Intl.DisplayNames("de", {type: "region"}).of("FR"), new Intl.Locale("zh-TW").maximize().toString(), "i".toLocaleUpperCase("tr")]',
    '[...new Intl.Segmenter("ja", {granularity: "word"}).segment("吾輩は猫である")].map((each) => each.segment)',
    'Intl.getCanonicalLocales(["EN-us"]).concat(Intl.NumberFormat.supportedLocalesOf(["de", "tlh"]))',
  ];
  for (const code of codes)
    assert.deepEqual((await run(code)).value, JSON.parse(JSON.stringify(runInThisContext(code))), code);
});

test('runs timers, also after the value', async () => {
  const answer = await run(
    'setTimeout((word) => console.log(word), 30, "late"); await new Promise((resolve) => setTimeout(resolve, 5)); console.log("early"); "value"',
  );
  assert.deepEqual([answer.value, answer.logs.map(({ text }) => text)], ['value', ['early', 'late']]);
});

test('accepts data as input, also as JSON text', async () => {
  assert.equal((await run('input.list.length', { input: { list: [1, 2] } })).value, 2);
  assert.equal((await run('input.list.length', { data: { list: [1] } })).value, 1);
  assert.equal((await run('typeof input')).value, 'undefined');
  assert.deepEqual(
    (await run('input', { input: JSON.parse('{"__proto__": {"x": 1}}') as unknown })).value,
    JSON.parse('{"__proto__": {"x": 1}}'),
  );
});

test('returns an error of the code as a result with its line', async () => {
  const cases: [string, string, RegExp, number | null][] = [
    ['const a = 1;\n\nnull.x;', 'TypeError', /null/, 3],
    ['const a = 1;\nconst = 2;', 'SyntaxError', /./, 2],
    ['console.warn("before"); throw "text"', 'Thrown', /^text$/, null],
    ['throw {name: {}, message: 5}', 'Error', /^$/, null],
    ['await Promise.reject(new RangeError("far"))', 'RangeError', /^far$/, 1],
    ['await new Promise(() => {})', 'Error', /never settles/, null],
    ['const late = 1;\nif (late) return null.x;', 'TypeError', /null/, 2],
    ['eval("return 1")', 'SyntaxError', /return/, 1],
    ['setTimeout(() => { throw new RangeError("late") }, 5); 1', 'RangeError', /^late$/, 1],
    ['new URL("nope")', 'TypeError', /Invalid URL/, 1],
    ['new Intl.NumberFormat("de", {style: "currency"})', 'TypeError', /[Cc]urrency/, 1],
    ['structuredClone(() => 1)', 'DataCloneError', /could not be cloned/, 1],
  ];
  for (const [code, name, message, line] of cases) {
    const { ok, error } = await run(code);
    assert.deepEqual([ok, error?.name, error?.line], [false, name, line], code);
    assert.match(error?.message ?? '', message, code);
  }
});

describe('malicious code', () => {
  const limited: [string, string][] = [
    ['for (;;);', 'TimeLimit'],
    ['const f = async () => { for (;;) await null; }; f()', 'TimeLimit'],
    ['try { for (;;); } catch { } finally { for (;;); }', 'TimeLimit'],
    ['({ toJSON() { for (;;); } })', 'TimeLimit'],
    ['const a = []; for (;;) a.push(new Array(1e5).fill(1))', 'MemoryLimit'],
    ['let s = "x"; for (;;) s += s', '(MemoryLimit|InternalError|RangeError)'],
    ['new Uint8Array(1e9)', '(MemoryLimit|RangeError)'],
    ['const f = () => f(); f()', '(InternalError|RangeError)'],
    ['JSON.stringify(Array(1e4).fill().reduce((a) => [a], []))', '.*'],
    ['/(a+)+$/.test("a".repeat(40) + "!")', 'TimeLimit'],
    ['setInterval(() => {}, 1)', 'TimeLimit'],
    ['await new Promise((resolve) => setTimeout(resolve, 60_000))', 'TimeLimit'],
    ['for (;;) new URL("http://example.com/" + "a".repeat(1e5))', 'TimeLimit'],
    ['new Intl.Segmenter("en").segment("a".repeat(5e6))', 'RangeError'],
  ];
  for (const [index, [code, name]] of limited.entries()) {
    test(`is killed: ${code}`, async () => {
      // The first has as much time as that of callers.
      const isBrief = index > 0 && name.includes('TimeLimit');
      const answer = await (isBrief ? runBriefly : index === 0 ? runAsCaller : run)(code);
      if (name !== '.*') assert.equal(answer.ok, false);
      assert.match(answer.error?.name ?? '', new RegExp(`^${name}$`), JSON.stringify(answer.error));
      if (name === 'TimeLimit') assert.equal(answer.error?.message, `the code ran longer than ${isBrief ? 1 : 5} s`);
    });
  }

  test('finds only the language', async () => {
    const answer = await run(
      'Object.getOwnPropertyNames(globalThis).filter((name) => /^(process|require|fetch|XMLHttpRequest|WebSocket|Deno|std|os|scriptArgs|print|module|Buffer|load|loadScript|read|global|WebAssembly)$/.test(name))',
    );
    assert.deepEqual(answer.value, []);
    for (const code of [
      'await import("fs")',
      'await import("/etc/passwd")',
      'await import("http://127.0.0.1/")',
      'import fs from "fs"',
    ])
      assert.equal((await run(code)).ok, false, code);
    for (const code of [
      '(() => {}).constructor("return process")()',
      'console.log.constructor("return process")()',
      'new Function("return this")().process.exit()',
    ])
      assert.notEqual((await run(code)).value_type, 'object', code);
  });

  test('cannot affect the next call, nor break the parser of its output', async () => {
    await run(
      'globalThis.left = 1; Object.prototype.polluted = 1; JSON.stringify = () => "{}"; Array.prototype.join = () => "wrong"',
    );
    assert.equal((await run('typeof left + typeof ({}).polluted')).value, 'undefinedundefined');
    const answer = await run(
      'JSON.stringify = () => "not json"; Array.prototype.join = () => { throw 1 }; String = null; console.log("a", {b: 1}); ({c: 2})',
    );
    assert.deepEqual([answer.value, answer.logs[0]?.text], [{ c: 2 }, 'a {"b":1}']);
  });

  test('is truncated if it prints too much', async () => {
    const chatty = await run('for (let i = 0; i < 1e5; i++) console.log("x".repeat(1e3))');
    assert.equal(chatty.truncated, true);
    assert.ok(JSON.stringify(chatty.logs).length < 300_000);
    const long = await run('"y".repeat(1e6)');
    assert.deepEqual([long.truncated, z.string().parse(long.value).length], [true, 200_000]);
    const deep = await run('Array(2e3).fill().reduce((inner) => [inner], "]\\"")');
    assert.deepEqual([deep.truncated, z.string().parse(deep.value).slice(0, 3)], [true, '[[[']);
    await assert.rejects(
      call(tool, { code: '1', input: JSON.parse(`${'['.repeat(50_000)}${']'.repeat(50_000)}`) as unknown }),
      isProblem('unprocessable', /nested too deeply/),
    );
  });

  test('does not cause the next call to be rejected', async () => {
    await assert.rejects(
      call(tool, { code: 'for (;;);' }, { signal: AbortSignal.timeout(300) }),
      (error) => error instanceof DOMException && error.name === 'TimeoutError',
    );
    await assert.rejects(call(tool, { code: '' }), /code/);
    assert.equal((await run('1 + 1')).value, 2);
  });
});
