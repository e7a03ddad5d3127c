// Which Debian packages Python packages bring.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { renderSystemPackages } from '../../../../../../controller/pipeline/plan/python/system-packages.ts';
import { listWithoutWheels } from '../../../../../../controller/pipeline/plan/python/packages/wheels.ts';
import { createMemoryTree } from '../../../../../../controller/pipeline/tree.ts';

const text = (
  files: Parameters<typeof createMemoryTree>[0],
  names: readonly string[],
  stage: 'build' | 'run',
): string => renderSystemPackages(createMemoryTree(files), new Set(names), stage).join('\n');

test('installs headers to build a compiled package, and its library to run it', () => {
  assert.match(
    text({}, ['psycopg2'], 'build'),
    /^# step: psycopg2 \|.*\nRUN .* build-essential python3-dev libpq-dev &&/,
  );
  assert.match(text({}, ['psycopg2'], 'run'), / libpq5 &&/);
  assert.equal(text({}, ['psycopg2-binary', 'constructor', '__proto__'], 'run'), '');
  assert.match(text({}, ['opencv-python', 'pydub'], 'run'), / libgl1 libglib2\.0-0 libxcb1 ffmpeg &&/);
});

test('installs headers for a package that comes without a wheel for the Python of the plan', () => {
  const tree = createMemoryTree({ 'requirements.txt': 'psycopg2-binary==2.9.6\nlxml>=5.3\n' });
  const names = new Set(['psycopg2-binary', 'lxml']);
  const withoutWheel = listWithoutWheels(tree, 'requirements.txt', names, 12);
  assert.deepEqual(withoutWheel, ['psycopg2-binary']);
  assert.deepEqual(listWithoutWheels(tree, 'requirements.txt', names, 11), []);
  assert.match(renderSystemPackages(tree, names, 'build', withoutWheel).join('\n'), / python3-dev libpq-dev &&/);
  assert.match(renderSystemPackages(tree, names, 'run', withoutWheel).join('\n'), / libpq5 &&/);
});

test('installs git for requirements from git, only in the build stage', () => {
  const files = { 'requirements.txt': 'x @ git+https://git.example/x\n' };
  assert.match(text(files, ['x'], 'build'), / git &&/);
  assert.equal(text(files, ['x'], 'run'), '');
});

test('installs the packages of packages.txt, and the programs of a conda environment', () => {
  assert.match(text({ 'packages.txt': 'ffmpeg\n# no\nlibx11-dev\n$(id)\n' }, [], 'run'), / ffmpeg libx11-dev &&/);
  assert.match(text({ 'environment.yml': 'dependencies: [poppler]\n' }, [], 'run'), / poppler-utils &&/);
});
