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
import { isReportable } from '../../../../controller/pipeline/settings-report.ts';
import { MaskedLines } from '../../../../lib/secret-mask.ts';
import { clean, keepHead, keepTail } from '../../../../controller/pipeline/text.ts';
import { makeNoise, sampleInput } from '../../../support/pipeline/sample.ts';

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
    plan: fc.constant({
      strategy: 'node' as const,
      reason: 'r'.repeat(390),
      port: 8080,
      certainty: 'guessed' as const,
      otherwise: 'o'.repeat(290),
    }),
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

test('omits the other reading of a plan and its paths, if the settings leave no room for them', () => {
  const paths = Array.from({ length: 8 }, (_, index) => `/${'p'.repeat(100)}${index}`);
  const plan = { strategy: 'node' as const, reason: 'r'.repeat(390), otherwise: 'o'.repeat(290), paths };
  const settings = { run: { env: [{ name: 'A', value: makeNoise(2_900) }] } };
  assert.ok(isReportable(settings));
  const parsed = stageMessage.parse(JSON.parse(formatTermination({ findings: [], plan, settings })));
  assert.deepEqual(parsed, { findings: [], plan: { strategy: 'node', reason: plan.reason }, settings });
});

test('reports all settings that a repository may set, whatever the plan and the findings are', () => {
  const finding = {
    rule: 'r'.repeat(60),
    severity: 'warning' as const,
    message: '"'.repeat(2_000),
    fix: '"'.repeat(600),
  };
  const plan = {
    strategy: 'dockerfile' as const,
    reason: '"'.repeat(390),
    framework: '"'.repeat(60),
    port: 65_535,
    certainty: 'certain' as const,
    otherwise: '"'.repeat(290),
    paths: Array.from({ length: 8 }, () => '"'.repeat(200)),
    mcp: {
      ...{ file: '"'.repeat(200), transport: 'streamable-http' as const, command: '"'.repeat(300) },
      ...{ path: '"'.repeat(100), bridged: true },
    },
  };
  const findings = Array.from({ length: 50 }, () => ({ ...finding, file: '"'.repeat(300), line: 1_000_000 }));
  const settings = [...Array(4_000).keys()]
    .map((length) => ({ run: { env: [{ name: 'A', value: makeNoise(length) }] } }))
    .findLast((each, length) => length % 100 === 0 && isReportable(each));
  const text = formatTermination({ findings, plan, settings });
  assert.ok(Buffer.byteLength(text) <= terminationMessageLimit);
  const parsed = stageMessage.parse(JSON.parse(text));
  assert.deepEqual('settings' in parsed ? parsed.settings : undefined, settings);
});

test('omits descriptions, and then names, of the variables of an MCP server that leave no room', () => {
  const variable = { name: 'N'.repeat(80), description: 'd'.repeat(100), secret: true, required: true };
  const mcp = {
    file: 'server.py',
    transport: 'stdio' as const,
    command: 'python server.py',
    path: '/mcp',
    bridged: true,
    environment: Array.from({ length: 12 }, () => variable),
  };
  const plan = { strategy: 'python' as const, reason: 'r'.repeat(390), mcp };
  const report = (bytes: number): unknown => {
    const settings = { run: { env: [{ name: 'A', value: makeNoise(bytes) }] } };
    const parsed = stageMessage.parse(JSON.parse(formatTermination({ findings: [], plan, settings })));
    return 'plan' in parsed ? parsed.plan.mcp?.environment : 'no plan';
  };
  const { description: _, ...named } = variable;
  assert.deepEqual(
    [report(100), report(1_500), report(3_000)],
    [mcp.environment, mcp.environment.map(() => named), undefined],
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

test('masks secrets in the build settings of components', () => {
  const own = {
    strategy: 'auto' as const,
    dockerfile: 'Dockerfile',
    args: [],
    env: [{ name: 'API_TOKEN', value: 'swordfish1' }],
  };
  const fields = { kind: 'web' as const, path: '.', hasCommand: false, isMain: true };
  const components = [{ ...fields, name: 'web', imageOf: 'web', build: own }];
  const masked = createPipelineMask({ input: sampleInput({ components }) })('login with swordfish1');
  assert.equal(masked, 'login with [secret]');
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
