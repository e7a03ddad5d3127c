// Which keys of Google are for servers: by the lines around them, since the keys look alike.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { isServerKey } from '../../../../../../../controller/pipeline/review/rules/secrets/formats.ts';

test('classifies a key as a server key if the surrounding lines show it, and as a browser key otherwise', () => {
  assert.ok(isServerKey('import os\nos.environ["GOOGLE_API_KEY"] = "AIza"\n', 2));
  assert.ok(isServerKey('genai.configure(\n  api_key="AIza",\n)\n', 2));
  assert.ok(!isServerKey('GOOGLE_MAP_API_KEY = "AIza"\n', 1));
  assert.ok(!isServerKey('apiKey: "AIza",\nauthDomain: "a.firebaseapp.com",\n', 1));
  assert.ok(!isServerKey('url = "https://www.youtube.com/youtubei/v1/search?key=AIza"\n', 1));
  assert.ok(!isServerKey(`gemini\n${'x\n'.repeat(20)}key = "AIza"\n`, 22));
});
