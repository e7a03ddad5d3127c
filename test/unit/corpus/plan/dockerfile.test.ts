// What is read back of a planned Dockerfile.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { readDockerfile } from '../../../corpus/plan/dockerfile.ts';

test('a program', () => {
  const text =
    'FROM a\nRUN npm ci\nRUN --mount=type=cache,target=/x \\\n  npm run build\nCMD ["sh","-c","exec npm start"]\n';
  const { start, build, serves } = readDockerfile(text);
  assert.equal(start, 'npm start');
  assert.deepEqual(build, [
    { command: 'npm ci', folder: '.' },
    { command: '--mount=type=cache,target=/x    npm run build', folder: '.' },
  ]);
  assert.equal(serves, undefined);
});

test('steps run in the folder that WORKDIR went to, and each stage begins at the top', () => {
  const { build } = readDockerfile(
    'FROM a\nWORKDIR /app\nWORKDIR "/app/web"\nRUN npm run release\nFROM b\nRUN go build\nCMD ["x"]\n',
  );
  assert.deepEqual(build, [
    { command: 'npm run release', folder: 'web' },
    { command: 'go build', folder: '.' },
  ]);
});

test('files, whatever stands in a heredoc', () => {
  const text = [
    'FROM nginx',
    "COPY <<'EOF' /etc/nginx.conf",
    'CMD ["no"]',
    'EOF',
    'COPY --from=build ["/app/dist/","/srv/site/"]',
    'CMD ["nginx","-g","daemon off;"]',
  ];
  assert.equal(readDockerfile(text.join('\n')).serves, 'dist');
  assert.equal(readDockerfile('COPY [".","/srv/site/"]\nCMD ["nginx"]').serves, '.');
});
