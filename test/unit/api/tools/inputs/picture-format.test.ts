// jpg is read as jpeg wherever a picture format is chosen, in a query too.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { z } from 'zod';
import { createBuiltinTools } from '../../../../../api/tools/builtin/all.ts';
import { coerceQuery } from '../../../../../api/tools/engine/coerce.ts';
import { pictureFormat } from '../../../../../api/tools/inputs/picture-format.ts';
import { urlServices } from '../../../../support/tools/url-services.ts';

test('jpg is jpeg, and nothing else changes', () => {
  const schema = z.strictObject({ format: pictureFormat(['png', 'jpeg']).prefault('png') });
  assert.deepEqual(schema.parse({ format: 'jpg' }), { format: 'jpeg' });
  assert.deepEqual(schema.parse({}), { format: 'png' });
  assert.deepEqual(schema.parse(coerceQuery(schema, { format: 'jpg' })), { format: 'jpeg' });
  assert.throws(() => schema.parse({ format: 'tif' }), /png/);
  assert.deepEqual(z.toJSONSchema(schema, { io: 'input' }).properties?.['format'], {
    type: 'string',
    enum: ['png', 'jpeg', 'jpg'],
    default: 'png',
  });
});

test('every tool that makes a JPEG takes jpg', async () => {
  const services = urlServices([]);
  try {
    const makers = createBuiltinTools(services).filter(({ artifacts = [] }) => artifacts.includes('image/jpeg'));
    assert.ok(makers.length >= 2);
    for (const { name, input, example } of makers)
      assert.equal(input.parse({ ...example, format: 'jpg' })['format'], 'jpeg', name);
  } finally {
    await services.workers.close();
  }
});
