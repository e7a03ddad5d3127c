// run_code runs Python with its standard library, reports its errors by the caller's lines, and gives it nothing else.
import assert from 'node:assert/strict';
import { afterAll, describe, test } from 'vitest';
import { z } from 'zod';
import { isDeep } from '../../support/repetitions.ts';
import { codeRunner } from '../../support/tools/run-code.ts';

const { run, runAsCaller, runBriefly, close } = codeRunner({ language: 'python' });
afterAll(() => close());

test('returns the value of the last expression, and printed output', async () => {
  const answer = await run('squares = [n * n for n in (1, 2, 3)]\nprint("squares", squares)\nsum(squares)');
  assert.deepEqual(answer, {
    ok: true,
    value: 14,
    value_type: 'int',
    value_text: '14',
    logs: [{ level: 'stdout', text: 'squares [1, 4, 9]' }],
    truncated: false,
    error: null,
  });
});

test('formats values as JSON, and as repr() does', async () => {
  const cases: [string, unknown, string, string][] = [
    ['{1: 2, "a": (1, None)}', { 1: 2, a: [1, null] }, 'dict', "{1: 2, 'a': (1, None)}"],
    ['2**70', '1180591620717411303424', 'int', '1180591620717411303424'],
    ['"\\U0001F600"', '\u{1F600}', 'str', '\u{1F600}'],
    ['float("nan")', null, 'float', 'nan'],
    ['x = 1', null, 'NoneType', 'None'],
    ['a = [1]; a.append(a); a', [1, '[Circular]'], 'list', '[1, [...]]'],
    ['import datetime\ndatetime.date(2024, 1, 31)', '2024-01-31', 'date', 'datetime.date(2024, 1, 31)'],
    ['import decimal\n[decimal.Decimal("1.10")]', ['1.10'], 'list', "[Decimal('1.10')]"],
    ['from collections import Counter\nCounter("aab")', { a: 2, b: 1 }, 'Counter', "Counter({'a': 2, 'b': 1})"],
    ['from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n\nP(3)', { x: 3 }, 'P', 'P(x=3)'],
    ['lambda: 1', null, 'function', ''],
    ['exit()', null, 'NoneType', 'None'],
  ];
  for (const [code, value, type, text] of cases) {
    const answer = await run(code);
    assert.deepEqual(
      [answer.ok, answer.value, answer.value_type, text === '' ? '' : answer.value_text],
      [true, value, type, text],
      `${code} ${JSON.stringify(answer.error)}`,
    );
  }
});

test('supports the standard library', async () => {
  const cases: [string, unknown][] = [
    ['import sqlite3\nsqlite3.connect(":memory:").execute("select 1 + 1").fetchone()[0]', 2],
    ['import statistics\nstatistics.median([1, 5, 2])', 2],
    ['import csv, io\nlist(csv.DictReader(io.StringIO("a,b\\n1,2\\n")))', [{ a: '1', b: '2' }]],
    ['import zlib, base64\nzlib.decompress(zlib.compress(b"moor")).decode()', 'moor'],
    ['import re, json\njson.loads(re.sub("x", "1", "[x]"))', [1]],
    ['import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 7\n\nasyncio.run(f())', 7],
    ['import itertools, fractions\nstr(sum(itertools.repeat(fractions.Fraction(1, 3), 2)))', '2/3'],
    ['import time\nbegun = time.monotonic()\ntime.sleep(0.2)\n0.15 < time.monotonic() - begun < 3', true],
  ];
  for (const [code, value] of cases) {
    const answer = await run(code);
    assert.deepEqual([answer.value, answer.error], [value, null], code);
  }
  const digest = await run('import hashlib\nhashlib.sha256(b"").hexdigest()');
  assert.equal(digest.value, 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855');
});

test('accepts data as input', async () => {
  assert.equal((await run('len(input["list"])', { input: { list: [1, 2] } })).value, 2);
  assert.equal((await run('input["é"]', { input: { é: '\u{1F600}' } })).value, '\u{1F600}');
});

test('returns an error of the code as a result with its line', async () => {
  const cases: [string, string, RegExp, number | null][] = [
    ['def f(n):\n    return 1 / n\n\nf(0)', 'ZeroDivisionError', /division by zero/, 2],
    ['x = 1\nx = ;', 'SyntaxError', /invalid syntax/, 2],
    ['import sys\nsys.exit("gone")', 'SystemExit', /^gone$/, 2],
    ['\nraise ValueError("far")', 'ValueError', /^far$/, 2],
    ['import json\n\njson.loads("{")', 'JSONDecodeError', /Expecting/, 3],
    ['def f(n): return f(n + 1)\nf(0)', 'RecursionError', /recursion/, 1],
    ['import numpy', 'ModuleNotFoundError', /'numpy'.*only Python's standard library/, 1],
    ['import ssl', 'ModuleNotFoundError', /'ssl'.*sandbox/, 1],
    ['import zoneinfo\nzoneinfo.ZoneInfo("Europe/Berlin")', 'ZoneInfoNotFoundError', /no time zone database/, 2],
  ];
  for (const [code, name, message, line] of cases) {
    const { ok, error } = await run(code);
    assert.deepEqual([ok, error?.name, error?.line], [false, name, line], `${code} ${JSON.stringify(error)}`);
    assert.match(error?.message ?? '', message, code);
  }
  const { error } = await run('def f(n):\n    return 1 / n\n\nf(0)');
  assert.match(
    error?.stack ?? '',
    /File "code\.py", line 4, in <module>\n {4}f\(0\)\n.*line 2, in f\n {4}return 1 \/ n/s,
  );
  assert.doesNotMatch(error?.stack ?? '', /<string>|boot|wlr/);
});

describe('malicious code', () => {
  const limited: [string, string][] = [
    ['while True: pass', 'TimeLimit'],
    ['try:\n    while True: pass\nexcept BaseException: pass\nwhile True: pass', 'TimeLimit'],
    ['import time\ntime.sleep(1000)', 'TimeLimit'],
    ['10 ** 10 ** 9', '(TimeLimit|MemoryLimit)'],
    ['import re\nre.match("(a+)+$", "a" * 40 + "!")', 'TimeLimit'],
    ['class Slow:\n    def __repr__(self):\n        while True: pass\n\nSlow()', 'TimeLimit'],
    ['a = []\nwhile True: a.append(bytearray(1000000))', 'MemoryLimit'],
    ['def f():\n    a = []\n    while True: a.append("x" * 100 + str(len(a)))\n\nf()', '(MemoryLimit|TimeLimit)'],
    ['bytearray(10 ** 10)', '(MemoryLimit|OverflowError)'],
    ['"x" * 10 ** 9', 'MemoryLimit'],
    ['import sys\nsys.setrecursionlimit(10 ** 6)\ndef f(n): return [f(n + 1)]\nf(0)', '.*'],
    ['while True: print("x" * 1000)', 'OutputLimit'],
    ['import os\nwhile True: os.write(2, b"x" * 1000)', 'OutputLimit'],
    ['import os\nos._exit(0)', 'SystemExit'],
    ['import os\nos.abort()', '(Crash|SystemExit)'],
  ];
  for (const [index, [code, name]] of limited.entries()) {
    test(`is killed: ${code}`, async () => {
      // The first has as much time as that of callers.
      const isBrief = index > 0 && name.includes('TimeLimit');
      const answer = await (isBrief ? runBriefly : index === 0 ? runAsCaller : run)(code);
      if (name !== '.*') assert.equal(answer.ok, false);
      assert.match(answer.error?.name ?? '', new RegExp(`^${name}$`), JSON.stringify(answer.error));
      if (name === 'TimeLimit') assert.equal(answer.error?.message, `the code ran longer than ${isBrief ? 1 : 5} s`);
      assert.equal((await run('1 + 1')).value, 2);
    });
  }

  const closed = [
    'import js',
    'import pyodide',
    'import pyodide_js',
    'import _pyodide_core',
    'from pyodide.code import run_js',
    'import ctypes',
    'import _ctypes',
    'import os\nos.fork()',
    'import os\nos.execv("/bin/sh", ["sh"])',
    'import os\nos.kill(1, 9)',
    'import subprocess\nsubprocess.run(["ls"])',
    'import multiprocessing',
    'import threading\nthreading.Thread(target=print).start()',
    'open("/etc/passwd")',
    'open("/proc/self/environ")',
    'open("package.json")',
    'open("../../../package.json")',
    'open("/tmp/left", "w").write("x")',
    'open("/left", "w").write("x")',
    'import os\nos.open("/etc/passwd", os.O_RDONLY)',
    'import os\nos.read(3, 10)',
    'import os\nos.write(3, b"x")',
    'import socket\nsocket.create_connection(("127.0.0.1", 80))',
    'import socket\nsocket.socket().connect(("127.0.0.1", 80))',
    'import socket\nsocket.socket(fileno=3).recv(1)',
    'import urllib.request\nurllib.request.urlopen("http://127.0.0.1/")',
    'import urllib.request\nurllib.request.urlopen("file:///etc/passwd")',
  ];
  /** Runs each of a list, and returns the names of what they raised. */
  const attempts = `
names = {}
for code in input:
    try:
        exec(compile(code, "code.py", "exec"), {"__name__": "__main__"})
        names[code] = ""
    except BaseException as error:
        names[code] = type(error).__name__
names`;
  let together: Promise<Readonly<Record<string, string>>> | undefined;
  /** In one interpreter, whose start takes most of the time; `npm run test:deep` has one for each. */
  async function nameError(code: string): Promise<string | undefined> {
    if (isDeep) return (await run(code)).error?.name;
    together ??= run(attempts, { input: closed }).then(({ value }) => z.record(z.string(), z.string()).parse(value));
    return (await together)[code];
  }
  for (const code of closed)
    test(`finds nothing: ${code}`, async () => {
      assert.match((await nameError(code)) ?? '', /Error$/);
    });

  test('sees no environment, no arguments of the host and none of its folders', async () => {
    const { value } = await run(
      'import os, sys\nlisted = []\nfor path in ("/", "/etc", "/proc", "/home", "/work", "/app", "."):\n    try: listed += os.listdir(path)\n    except OSError: pass\n[dict(os.environ), listed, sys.argv]',
    );
    assert.deepEqual(value, [{}, [], ['-c']]);
  });

  test('cannot affect the next call', async () => {
    await run('import builtins, sys\nbuiltins.left = 1\nsys.modules["json"] = None\nsys.stdout = None');
    assert.deepEqual((await run('import json, builtins\n[hasattr(builtins, "left"), json.dumps(1)]')).value, [
      false,
      '1',
    ]);
  });

  test('controls only its own output', async () => {
    const forged = await run('import sys\nsys.stdout.write("\\0not the mark\\0{}")\n5');
    assert.deepEqual([forged.value, forged.logs[0]?.text], [5, '\0not the mark\0{}']);
    const silenced = await run('import sys\nsys.stdout.close()\n6');
    assert.ok(silenced.value === 6 || silenced.error !== null);
  });

  test('is truncated if it prints too much', async () => {
    const chatty = await run('for _ in range(2000): print("x" * 1000)');
    assert.equal(chatty.truncated, true);
    assert.ok(JSON.stringify(chatty.logs).length < 300_000);
    const long = await run('"y" * 1_000_000');
    assert.deepEqual([long.truncated, z.string().parse(long.value).length], [true, 200_000]);
    assert.equal(long.value_text.length, 200_000);
    const deep = await run('x = []\nfor _ in range(100_000): x = [x]\nx');
    assert.match(JSON.stringify(deep.value), /Nested too deeply/);
  });
});
