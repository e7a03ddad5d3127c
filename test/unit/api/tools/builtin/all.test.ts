// The tools that there are.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { createBuiltinTools } from '../../../../../api/tools/builtin/all.ts';
import { urlServices } from '../../../../support/tools/url-services.ts';

const named = [
  'web_search',
  'fetch_page',
  'render_diagram',
  'check_grammar',
  'transcribe_audio',
  'convert_to_pdf',
  'translate_text',
  'ask_model',
  'compare_models',
  'list_apps',
  'translate_pdf',
  'deep_research',
  'make_slides',
];

test('lists 22 tools, the named ones first [spec tools.count]', async () => {
  const services = urlServices([], {});
  try {
    const names = createBuiltinTools(services).map(({ name }) => name);
    assert.deepEqual(names.slice(0, named.length), named);
    assert.equal(new Set(names).size, 22);
    assert.equal(names.length, 22);
  } finally {
    await services.workers.close();
  }
});
