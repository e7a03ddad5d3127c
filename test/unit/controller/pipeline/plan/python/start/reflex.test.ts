// How a Reflex app is known, and started without compiling its pages again.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { findStart } from '../../../../../../../controller/pipeline/plan/python/start/find.ts';
import { firstReflex } from '../../../../../../../controller/pipeline/plan/python/start/reflex.ts';
import { createMemoryTree } from '../../../../../../../controller/pipeline/tree.ts';
import { fastapi, type Files } from '../../plan.cases.ts';

const config = 'import reflex as rx\n\nconfig = rx.Config(\n    app_name="chat",\n)\n';
const start = (files: Files, ...names: string[]): ReturnType<typeof findStart> =>
  findStart(createMemoryTree(files), new Set(names));

test("reads the app's name from rxconfig.py, whatever the other files look like", () => {
  const found = start({ 'rxconfig.py': config, 'chat/chat.py': 'import reflex as rx\n', 'main.py': fastapi }, 'reflex');
  assert.equal(found?.framework, 'Reflex');
  assert.equal(found.command, 'exec granian --interface asgi --factory --host 0.0.0.0 --port $PORT chat.chat:app');
  assert.equal(found.environment?.['__REFLEX_SKIP_COMPILE'], 'true');
  assert.equal(found.environment['__REFLEX_MOUNT_FRONTEND_COMPILED_APP'], 'true');
  assert.deepEqual(found.needs, [`'reflex>=${firstReflex}'`]);
});

test('starts the module that it names, after migrations if there are any', () => {
  const named = config.replace(',\n)', ',\n    app_module_import="web.pages",\n)');
  const found = start({ 'rxconfig.py': named, 'alembic/env.py': '', 'uv.lock': '' });
  assert.match(found?.command ?? '', /^\( reflex db migrate \) && exec granian .* web\.pages:app$/);
  assert.deepEqual(found?.needs, []);
});

test('replaces a command that would compile at each start, and keeps any other', () => {
  const files = { 'rxconfig.py': config, 'chat/chat.py': '' };
  assert.equal(start({ ...files, Procfile: 'web: reflex run --env prod' })?.framework, 'Reflex');
  assert.match(start({ ...files, Procfile: 'web: python serve.py' })?.command ?? '', /python serve\.py$/);
});

test('ignores a file with that name without an app, or for another library', () => {
  assert.equal(start({ 'rxconfig.py': 'import reflex\n' }, 'reflex'), undefined);
  assert.equal(start({ 'rxconfig.py': 'import other\nconfig = other.Config(app_name="x")\n' }), undefined);
});
