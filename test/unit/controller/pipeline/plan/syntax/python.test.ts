// What is read of Python sources: code, and never text in strings or comments.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import {
  hasCall,
  hasDecorator,
  hasImport,
  listImportedRoots,
  parsePython,
} from '../../../../../../controller/pipeline/plan/syntax/python.ts';

test('reads imports of every form, and none of a string or a comment', () => {
  const module = parsePython(`
"""
import streamlit as st
from gradio import Blocks
"""
# import dash
import os, shop.api as api
from .models import (Item,
    Cart as Basket)
def main():
    from flask import Flask
print('''
import fastapi
''')
`);
  for (const name of ['os', 'shop', 'shop.api', 'flask', 'flask.Flask', '.models'])
    assert.ok(hasImport(module, name), name);
  for (const name of ['streamlit', 'gradio', 'dash', 'fastapi', 'models', 'api'])
    assert.ok(!hasImport(module, name), name);
  assert.deepEqual([...listImportedRoots(module)], ['os', 'shop', 'flask']);
});

test('lists the variables of the module, and none of functions, classes or the main guard', () => {
  const { variables, isScript } = parsePython(`
app: Flask = create()
one = two = 3
if debug:
    tools = Tools()
try:
    cache = Redis()
except ImportError:
    cache = None
def make():
    local = Flask(__name__)
class Settings:
    field = 1
if __name__ == "__main__":
    guarded = 2
else:
    imported = 4
`);
  assert.deepEqual([...variables.keys()], ['app', 'one', 'two', 'tools', 'cache', 'imported']);
  assert.equal(variables.get('app')?.annotation, 'Flask');
  assert.ok(isScript);
  assert.ok(!parsePython('"""\nif __name__ == "__main__":\n    main()\n"""').isScript);
});

test('reads which functions return something and can be called without arguments', () => {
  const { functions } = parsePython(`
def make(name, *rest, **more) -> Flask:
    return Flask(name)
def bare(name="app"):
    app = Flask(name)
    return app
def main():
    def inner():
        return 1
    bare().run()
`);
  assert.deepEqual(
    functions.map(({ name, isCallableBare, returnsValue }) => [name, isCallableBare, returnsValue]),
    [
      ['make', false, true],
      ['bare', true, true],
      ['main', true, false],
    ],
  );
});

test('reads calls and decorators by their dotted names', () => {
  const module = parsePython('@cl.on_message\nasync def go(m):\n    make().run(port=80)\n    a.b.c(1)\n');
  assert.ok(hasDecorator(module, /^cl\.on_message$/));
  assert.ok(!hasCall(module, /on_message/));
  assert.deepEqual(
    module.calls.filter(({ isDecorator }) => !isDecorator).map(({ callee, scope }) => [callee, scope]),
    [
      ['.run', ['go']],
      ['make', ['go']],
      ['a.b.c', ['go']],
    ],
  );
});

test('reads which versions of Python the code runs on', () => {
  const least = (text: string): number => parsePython(text).oldestMinor;
  assert.equal(least('match x:\n    case 1:\n        pass\n'), 10);
  assert.equal(least('def f(a: int | None) -> list[str]: ...\n'), 10);
  assert.equal(least('from __future__ import annotations\ndef f(a: int | None): ...\n'), 0);
  assert.equal(least('def f(a: "int | None"): ...\n'), 0);
  assert.equal(least('a: dict[str, int] = {}\n'), 9);
  assert.equal(least('import tomllib\n'), 11);
  assert.equal(least('from typing import Self\n'), 11);
  assert.equal(least('match = 3\nprint(a | b)\n'), 0);
  assert.equal(parsePython('import imp, cgi\n').newestMinor, 11);
});

test('reads what can be read of wrong code, and of code nested deeper than anybody writes', () => {
  assert.ok(hasImport(parsePython('print "old"\nimport os\ndef (:\n'), 'os'));
  assert.ok(hasImport(parsePython(`import os\nx = ${'f('.repeat(20_000)}`), 'os'));
  assert.ok(hasImport(parsePython(`import os\nx = ${'('.repeat(50_000)}1${')'.repeat(50_000)}\n`), 'os'));
});
