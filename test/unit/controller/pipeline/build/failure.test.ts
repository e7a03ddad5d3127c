// What a failed build is taken for: the author's to fix, or a fault of the platform.
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { test } from 'vitest';
import { type FailedBuild, judgeFailure } from '../../../../../controller/pipeline/build/failure.ts';
import { isRegistryHiccup, suggestFix } from '../../../../../controller/pipeline/build/fixes.ts';
import { DoubtfulFault, Fault, Rejected } from '../../../../../controller/pipeline/contract.ts';

const dockerfile = 'FROM python:3.11\nCOPY x /\nRUN make all\n';
const excerpt = (line: number): string =>
  `Dockerfile:${line}\n--------------------\n   ${line - 1} |     before\n   ${line} | >>> RUN make all\n--------------------\n`;

function judge(output: string, changes: Partial<FailedBuild> = {}): Rejected | Fault {
  return judgeFailure({ output, dockerfile, authored: 'web/Dockerfile', ...changes });
}

function step(log: string, code = 1): string {
  const lines = log
    .split('\n')
    .map((line, index) => `#7 0.${index} ${line}\n`)
    .join('');
  return `#7 [2/2] RUN make all\n${lines}#7 ERROR: process "/bin/sh -c make all" did not complete successfully: exit code: ${code}\n------\n${excerpt(3)}error: failed to solve: process "/bin/sh -c make all" did not complete successfully: exit code: ${code}\n`;
}

const verdicts: readonly {
  name: string;
  output: string;
  changes?: Partial<FailedBuild>;
  rule: string;
  line?: number;
  message: RegExp;
  fix?: RegExp;
}[] = [
  {
    name: 'files that Go embeds and another step makes',
    output: step('server/index_linux.go:34:12: pattern src/xterm.css: no matching files found'),
    rule: 'build/failed',
    line: 3,
    message: /index_linux\.go:34:12: pattern src\/xterm\.css: no matching files/,
    fix: /^The Go code embeds files/,
  },
  {
    name: 'a step',
    output: step('make: *** No rule to make target'),
    rule: 'build/failed',
    line: 3,
    message: /"RUN make all" failed with exit code 1/,
  },
  {
    name: 'a silent download without a network',
    output:
      'error: failed to solve: process "/bin/sh -c curl -sLO https://downloads.example.org/tool && chmod +x tool" did not complete successfully: exit code: 6\n',
    rule: 'build/network',
    message: /could not reach downloads\.example\.org/,
  },
  {
    name: 'a silent download of what is not there',
    output:
      'error: failed to solve: process "/bin/sh -c curl -sfLO https://downloads.example.org/tool" did not complete successfully: exit code: 22\n',
    rule: 'build/failed',
    message: /failed with exit code 22/,
  },
  {
    name: 'versions that do not fit, by uv',
    output: step(
      'error: No solution found when resolving dependencies\ncause: Because only deta<=0.2.54 is available and you require deta>=1.2.0, we can conclude that your requirements are unsatisfiable.',
    ),
    rule: 'build/failed',
    line: 3,
    message: /Because only deta/,
  },
  {
    name: 'a step out of memory',
    output: step('Killed', 137),
    rule: 'build/memory',
    line: 3,
    message: /ran out of memory/,
    fix: /build\.resources\.memory/,
  },
  {
    name: 'a step out of disk',
    output: step('write error: No space left on device'),
    rule: 'build/disk',
    line: 3,
    message: /ran out of disk/,
    fix: /build\.resources\.disk/,
  },
  {
    name: 'a compiler that is missing',
    output: step("error: command 'gcc' failed: No such file or directory"),
    rule: 'build/failed',
    line: 3,
    message: /gcc/,
    fix: /packages\.txt/,
  },
  {
    name: 'conflicting packages',
    output: step('npm error code ERESOLVE'),
    rule: 'build/failed',
    line: 3,
    message: /ERESOLVE/,
    fix: /legacy-peer-deps/,
  },
  {
    name: 'a missing script',
    output: step('npm error Missing script: "build"'),
    rule: 'build/failed',
    line: 3,
    message: /Missing script/,
    fix: /"scripts"/,
  },
  {
    name: 'an address of the author that is not there',
    output: step('curl: (6) Could not resolve host: models.invalid'),
    rule: 'build/network',
    line: 3,
    message: /could not reach models\.invalid\..*Its log says "curl: \(6\) Could not resolve host: models\.invalid"/,
  },
  {
    name: 'an address behind a progress bar, which returns to the beginning of its line',
    output: step('fetching\r  0   0  --:--:--     0curl: (6) Could not resolve host: files.invalid', 6),
    rule: 'build/network',
    line: 3,
    message: /could not reach files\.invalid/,
  },
  {
    name: 'a key that the code wants',
    output: step('Error: The OPENAI_API_KEY environment variable is missing or empty; either provide it'),
    rule: 'build/failed',
    line: 3,
    message: /OPENAI_API_KEY/,
    fix: /build\.env/,
  },
  {
    name: 'a variable that settings want',
    output: step('django.core.exceptions.ImproperlyConfigured: Set the DATABASE_URL environment variable'),
    rule: 'build/failed',
    line: 3,
    message: /DATABASE_URL/,
    fix: /build\.env/,
  },
  {
    name: 'a file to copy',
    output: `${excerpt(2)}error: failed to solve: failed to compute cache key: failed to calculate checksum of ref abc::def: "/x": not found\n`,
    rule: 'build/file-missing',
    line: 2,
    message: /copies \/x/,
  },
  {
    name: 'the folder of git',
    output: `${excerpt(2)}error: failed to solve: failed to compute cache key: failed to calculate checksum of ref abc::def: "/.git": not found\n`,
    rule: 'build/file-missing',
    line: 2,
    message: /copies \/\.git, but it does not exist/,
    fix: /no \.git folder\. Declare ARG SOURCE_COMMIT in the Dockerfile/,
  },
  {
    name: 'a folder to copy by a pattern',
    output: `${excerpt(2)}error: failed to solve: failed to compute cache key: failed to calculate checksum of ref abc::def: failed to walk /tmp/buildkit-mount305/config: lstat /tmp/buildkit-mount305/config: no such file or directory\n`,
    rule: 'build/file-missing',
    line: 2,
    message: /copies \/config, but it does not exist/,
  },
  {
    name: 'a file of another stage',
    output: `${excerpt(2).replace('RUN make all', 'COPY --from=build /src/dist .')}error: failed to solve: failed to compute cache key: failed to calculate checksum of ref abc::def: "/src/dist": not found\n`,
    rule: 'build/file-missing',
    line: 2,
    message: /copies \/src\/dist, but it does not exist in the stage or image build/,
    fix: /Correct the path in COPY --from/,
  },
  {
    name: 'an image whose argument has no value',
    output: 'error: failed to solve: base name (${BASE}) should not be blank\n',
    rule: 'build/failed',
    message: /base name \(\$\{BASE\}\) should not be blank/,
    fix: /ARG that has no value.*build\.args/,
  },
  {
    name: 'a file that cannot be read',
    output: 'error: failed to solve: dockerfile parse error on line 2: unknown instruction: COPPY\n',
    rule: 'dockerfile/invalid',
    line: 2,
    message: /COPPY/,
  },
  {
    name: 'an image that is not there',
    output:
      'error: failed to solve: python:3.11: failed to resolve source metadata for docker.io/library/python:3.11: docker.io/library/python:3.11: not found\n',
    rule: 'build/base-image',
    line: 1,
    message: /docker\.io\/library\/python:3\.11 cannot be found/,
    fix: /architecture\. python:3\.11-slim-bookworm and python:3\.13-slim-trixie are always available\./,
  },
  {
    name: 'an image with tag and digest that is not there',
    output: `error: failed to solve: node:24@sha256:${'ab'.repeat(32)}: failed to resolve source metadata for docker.io/library/node:24@sha256:${'ab'.repeat(32)}: docker.io/library/node:24@sha256:${'ab'.repeat(32)}: not found\n`,
    rule: 'build/base-image',
    message: /library\/node:24@sha256:(?:ab){32} cannot be found/,
    fix: /architecture\. node:24-bookworm-slim is always available\./,
  },
  {
    name: 'an image that the mirror lacks, with Docker Hub out of reach',
    changes: { mirrored: ['docker.io'] },
    output:
      'error: failed to solve: python:3.11: failed to resolve source metadata for docker.io/library/python:3.11: failed to do request: Head "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io: no such host\n',
    rule: 'build/base-image',
    line: 1,
    message: /neither this installation's mirror of Docker Hub nor Docker Hub itself/,
  },
  {
    name: 'an image of another registry that the mirror stands in for, and lacks',
    changes: {
      mirrored: ['docker.io', 'registry.invalid'],
      dockerfile: 'FROM registry.invalid/tools/uv:1\n',
    },
    output:
      'error: failed to solve: registry.invalid/tools/uv:1: failed to resolve source metadata for registry.invalid/tools/uv:1: failed to do request: Head "https://registry.invalid/v2/tools/uv/manifests/1": dial tcp: lookup registry.invalid on 192.0.2.1:53: no such host\n',
    rule: 'build/base-image',
    line: 1,
    message: /neither this installation's mirror of registry\.invalid nor registry\.invalid itself/,
  },
  {
    name: 'an image of a registry that has no address',
    changes: { dockerfile: 'ARG A\nFROM registry.invalid/tools/uv:1\n' },
    output:
      'error: failed to solve: registry.invalid/tools/uv:1: failed to resolve source metadata for registry.invalid/tools/uv:1: failed to do request: Head "https://registry.invalid/v2/tools/uv/manifests/1": dial tcp: lookup registry.invalid on 192.0.2.1:53: no such host\n',
    rule: 'build/base-image',
    line: 2,
    message: /no registry was found at registry\.invalid/,
    fix: /debian:bookworm-slim is always available/,
  },
];

for (const { name, output, changes, rule, line, message, fix } of verdicts) {
  test(`rejects: ${name}`, () => {
    const verdict = judge(output, changes);
    assert.ok(verdict instanceof Rejected, verdict.message);
    const [finding] = verdict.findings;
    assert.equal(finding.rule, rule);
    assert.equal(finding.file, 'web/Dockerfile');
    assert.equal(finding.line, line);
    assert.match(finding.message, message);
    if (fix !== undefined) assert.match(finding.fix, fix);
  });
}

const faults: readonly { name: string; output: string; changes?: Partial<FailedBuild> }[] = [
  {
    name: 'a push',
    output:
      'error: failed to solve: failed to push registry.example/apps/a: unexpected status from POST request to https://registry.example/v2/: 503 Service Unavailable\n',
  },
  {
    name: 'the daemon',
    output: 'error: failed to receive status: rpc error: code = Unavailable desc = error reading from server: EOF\n',
  },
  {
    name: 'no daemon',
    output: 'error: listing workers for Build: failed to list workers: Unavailable: connection error\n',
  },
  { name: 'nothing said', output: '' },
  {
    name: 'Docker Hub out of reach',
    output:
      'error: failed to solve: python:3.11: failed to resolve source metadata for docker.io/library/python:3.11: failed to do request: Head "https://registry-1.docker.io/v2/": dial tcp: i/o timeout\n',
  },
  {
    name: 'another registry out of reach',
    output:
      'error: failed to solve: registry.example/a:1: failed to resolve source metadata for registry.example/a:1: failed to do request: Head "https://registry.example/v2/": dial tcp: i/o timeout\n',
  },
  {
    name: 'Docker Hub out of patience',
    output:
      'error: failed to solve: failed to resolve source metadata for docker.io/library/python:3.11: unexpected status from HEAD request: 429 Too Many Requests\n',
  },
  {
    name: 'a registry without space, as the proxy reports it',
    output:
      'error: failed to solve: failed to push proxy.test:5000/apps/a:build-1: unexpected status from PUT request to http://proxy.test:5000/v2/apps/a/blobs/uploads/x: 507 Insufficient Storage\n',
  },
  {
    name: 'a disk that is full beside the steps',
    output:
      'error: failed to solve: failed to copy files: write /var/lib/buildkit/runc-overlayfs/x: no space left on device\n',
  },
  {
    name: 'a step without space on a node that has less than the build may take',
    changes: { lacksDisk: true },
    output: step('write error: No space left on device'),
  },
  {
    name: 'a package registry, as a planned step reports it',
    changes: { authored: undefined },
    output: step("ReadTimeoutError: HTTPSConnectionPool(host='files.pythonhosted.org', port=443): Read timed out."),
  },
];

for (const { name, output, changes } of faults) {
  test(`reports a fault: ${name}`, () => {
    assert.ok(judge(output, changes) instanceof Fault);
  });
}

test('rejects a step that fails for its own reason on a full node', () => {
  assert.ok(judge(step('npm error Missing script: "build"'), { lacksDisk: true }) instanceof Rejected);
});

const staged = step('npm error network request to https://registry.npmjs.org/x failed, reason: read ECONNRESET');

test('does not trust a step of an author’s Dockerfile that prints a registry fault', () => {
  const verdict = judge(staged);
  assert.ok(verdict instanceof Rejected);
  assert.equal(verdict.findings[0].file, 'web/Dockerfile');
});

test('trusts a planned step that prints a registry fault once, and then rejects', () => {
  assert.ok(judge(staged, { authored: undefined }) instanceof DoubtfulFault);
  assert.ok(judge(staged, { authored: undefined, doubted: true }) instanceof Rejected);
});

test('trusts an outage of the author’s own registry once, and one of Docker Hub each time', () => {
  const from = (image: string): string =>
    `error: failed to solve: failed to resolve source metadata for ${image}: unexpected status from HEAD request to https://x/: 503 Service Unavailable\n`;
  assert.ok(judge(from('registry.example/a:1')) instanceof DoubtfulFault);
  const verdict = judge(from('registry.example/a:1'), { doubted: true });
  assert.ok(verdict instanceof Rejected);
  assert.equal(verdict.findings[0].rule, 'build/base-image');
  const hub = judge(from('docker.io/library/python:3.11'), { doubted: true });
  assert.ok(hub instanceof Fault && !(hub instanceof DoubtfulFault));
});

test('names a planned step by its purpose and the file that caused it', () => {
  const planned = 'FROM a\n# step: package-lock.json | installing the packages\nRUN make all\n';
  const verdict = judgeFailure({
    output: step('npm error code E404\nnpm error 404 Not Found - GET https://registry.npmjs.org/nope'),
    dockerfile: planned,
  });
  assert.ok(verdict instanceof Rejected);
  const [finding] = verdict.findings;
  assert.equal(finding.file, 'package-lock.json');
  assert.equal(finding.line, undefined);
  assert.match(
    finding.message,
    /"installing the packages" failed with exit code 1: npm error 404 Not Found - GET https:\/\/registry\.npmjs\.org\/nope/,
  );
});

test("shows the failed step's log without the progress output", () => {
  const verdict = judge(`#6 [1/2] FROM a\n#6 0.1 from another step\n${step('the reason')}`);
  assert.ok(verdict instanceof Rejected);
  assert.match(verdict.log ?? '', /the reason/);
  assert.doesNotMatch(verdict.log ?? '', /another step|#7/);
});

test('property: reaches a verdict on any output quickly', () => {
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string({ unit: 'binary', maxLength: 2000 }),
        fc
          .array(
            fc.constantFrom(
              'error: failed to solve: ',
              '\n',
              '#7 ERROR: ',
              '"',
              ': not found',
              'Dockerfile:3',
              '--------------------\n',
              '   3 | >>> x',
              'RUN ',
            ),
            { maxLength: 60 },
          )
          .map((parts) => parts.join('')),
      ),
      (output) => {
        const verdict = judge(output);
        assert.ok(verdict instanceof Rejected || verdict instanceof Fault);
      },
    ),
  );
});

test('always suggests a fix, and reports hiccups only for registries', () => {
  assert.match(suggestFix('').fix, /docker build/);
  assert.equal(
    isRegistryHiccup('npm error network request to https://registry.npmjs.org/x failed, reason: ECONNRESET'),
    true,
  );
  assert.equal(isRegistryHiccup('fetch https://models.example: ECONNRESET'), false);
});
