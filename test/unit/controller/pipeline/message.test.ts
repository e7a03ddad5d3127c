// A termination message always fits and always parses, whatever a repository or a tool put into it.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { terminationMessageLimit } from '../../../../controller/pipeline/contract.ts';
import {
  createPipelineMask,
  formatTermination,
  maskMessage,
  stageMessage,
  type StageMessage,
} from '../../../../controller/pipeline/message.ts';
import { MaskedLines } from '../../../../lib/secret-mask.ts';
import { clean, keepHead, keepTail } from '../../../../controller/pipeline/text.ts';

const anyText = fc.oneof(
  fc.string({ maxLength: 6000, unit: 'binary' }),
  fc.string({ maxLength: 300 }),
  fc.constant('\u0000"\\\ud800'.repeat(2000)),
  fc.constant('🚢'.repeat(3000)),
);
const anyFinding = fc.record(
  {
    rule: anyText,
    severity: fc.constantFrom('error' as const, 'warning' as const),
    file: anyText,
    line: fc.nat(),
    message: anyText,
    fix: anyText,
  },
  { requiredKeys: ['rule', 'severity', 'message', 'fix'] },
);
const anyMessage: fc.Arbitrary<StageMessage> = fc.oneof(
  fc.record(
    {
      rejected: fc.constant(true as const),
      findings: fc.array(anyFinding, { minLength: 1, maxLength: 60 }),
      log: anyText,
    },
    { requiredKeys: ['rejected', 'findings'] },
  ),
  fc.record({
    findings: fc.array(anyFinding, { maxLength: 60 }),
    plan: fc.constant({ strategy: 'node' as const, reason: 'r'.repeat(390), port: 8080 }),
  }),
  fc.record({
    image: fc.constant(`registry.example/apps/a@sha256:${'a'.repeat(64)}`),
    findings: fc.array(anyFinding, { maxLength: 60 }),
  }),
  fc.record({ fault: anyText }),
);

test('property: fits, parses, and keeps its kind and its first error', () => {
  fc.assert(
    fc.property(anyMessage, (message) => {
      const text = formatTermination(message);
      assert.ok(Buffer.byteLength(text) <= terminationMessageLimit, `${Buffer.byteLength(text)}`);
      const parsed = stageMessage.parse(JSON.parse(text));
      assert.equal('fault' in parsed, 'fault' in message);
      assert.equal('rejected' in parsed, 'rejected' in message);
      assert.equal('image' in parsed, 'image' in message);
      if ('findings' in message && 'findings' in parsed && message.findings.length > 0) {
        assert.equal(
          parsed.findings[0]?.severity,
          message.findings.some((each) => each.severity === 'error') ? 'error' : 'warning',
        );
      }
    }),
    { numRuns: 300 },
  );
});

test('counts omitted findings, and keeps the end of the log', () => {
  const findings = Array.from({ length: 40 }, (_, index) => ({
    rule: `r/${index}`,
    severity: 'error' as const,
    message: 'm'.repeat(150),
    fix: 'x'.repeat(150),
  }));
  const parsed = stageMessage.parse(
    JSON.parse(formatTermination({ rejected: true, findings, log: `start${'l\n'.repeat(5000)}the end` })),
  );
  assert.ok('rejected' in parsed);
  const last = parsed.findings.at(-1);
  assert.equal(last?.rule, 'findings/more');
  assert.match(last.message, new RegExp(`^${40 - (parsed.findings.length - 1)} more`));
  assert.ok(parsed.log?.endsWith('the end'));
});

test('property: cuts text by bytes, but never inside a character', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 500 }), fc.nat(600), (raw, bytes) => {
      const text = clean(raw);
      for (const cut of [keepHead(text, bytes), keepTail(text, bytes)]) {
        assert.ok(Buffer.byteLength(cut) <= Math.max(bytes, 0));
        assert.ok((cut.isWellFormed() && !cut.includes('\ufffd')) || text.includes('\ufffd'));
      }
    }),
  );
});

test('removes terminal escapes and direction overrides', () => {
  assert.equal(clean('\u001b[31mred\u001b[0m \u001b]0;title\u0007a\u202eb\r\nc\u0000'), 'red ab\nc');
});

const token = 'chat.0f8fad5b-d9cb-469f-a165-70867728950e.abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG';
const build = {
  env: [{ name: 'NPM_TOKEN', value: 'hunter2hunter2' }],
  args: [{ name: 'VERSION', value: '1.2.3-beta' }],
};
const mask = createPipelineMask({ input: { build } as never, pushToken: token });

test('masks lines even if a secret arrives in pieces', () => {
  const printed: string[] = [];
  const lines = new MaskedLines(mask, (text) => {
    printed.push(text);
  });
  for (const piece of ['push with ', token.slice(0, 30), token.slice(30), '\nnpm ERR hunter2', 'hunter2 1.2.3-beta\nü'])
    lines.write(Buffer.from(piece));
  assert.deepEqual(printed, ['push with [secret]\n', 'npm ERR [secret] 1.2.3-beta\n']);
  lines.end();
  assert.equal(printed.at(-1), 'ü');
});

test('passes an endless line on without filling memory', () => {
  let printed = 0;
  const lines = new MaskedLines(mask, (text) => {
    printed += text.length;
  });
  for (let n = 0; n < 100; n += 1) lines.write(Buffer.alloc(10_000, 'a'));
  assert.ok(printed > 900_000);
});

test('masks findings, log and fault, but nothing that identifies an image', () => {
  const finding = { rule: 'build/failed', severity: 'error', message: `401 for ${token}`, fix: 'Look.' } as const;
  const rejected = maskMessage({ rejected: true, findings: [finding], log: 'NPM_TOKEN=hunter2hunter2' }, mask);
  assert.doesNotMatch(JSON.stringify(rejected), /hunter2|abcdefghij/);
  assert.deepEqual(maskMessage({ fault: `no ${token}` }, mask), { fault: 'no [secret]' });
});
