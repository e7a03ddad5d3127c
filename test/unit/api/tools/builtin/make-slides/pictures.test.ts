// Pictures of an outline: one that cannot be fetched leaves a placeholder and a warning, one that is at fault is refused.
import assert from 'node:assert/strict';
import { test } from 'vitest';
import { withPictures } from '../../../../../../api/tools/builtin/make-slides/pictures.ts';
import { readOutline } from '../../../../../../api/tools/builtin/make-slides/outline.ts';
import { fetchFailed, urlRefused } from '../../../../../../api/tools/fetch/problems.ts';
import { toolBusy } from '../../../../../../api/tools/problems.ts';
import { Problem, type ProblemType } from '../../../../../../lib/problem.ts';
import { contextWith, servicesWith } from '../../../../../support/tools/call.ts';

const outline =
  '# Deck\n## One\n- before\n\n![A map of the harbour](https://example.org/gone.png)\n\n- after\n## Two\n- fine';

function servicesThatFail(type: ProblemType): ReturnType<typeof servicesWith> {
  const fail = (): Promise<never> => Promise.reject(new Problem(type, 'example.org returned status 404.'));
  return servicesWith({ fetcher: { fetch: fail, get: fail, check: fail } });
}

test('an unreachable picture is a placeholder with a warning, and the deck is made', async () => {
  for (const type of [fetchFailed, urlRefused]) {
    const { deck, warnings } = await withPictures(readOutline(outline).deck, servicesThatFail(type), contextWith());
    assert.equal(deck.slides.length, 2);
    assert.match(JSON.stringify(deck), /\[Picture not available: A map of the harbour\]/);
    assert.match(JSON.stringify(deck), /before.*after.*fine/);
    assert.deepEqual(warnings, [
      'Slide 1 ("One"): example.org returned status 404. A placeholder stands in its place.',
    ]);
  }
});

test('an artifact that has expired is a placeholder too', async () => {
  const services = servicesWith({ artifacts: { get: () => Promise.resolve(undefined) } });
  const expired = outline.replace('https://example.org/gone.png', 'AAAAAAAAAAAAAAAAAAAAAA');
  const { warnings } = await withPictures(readOutline(expired).deck, services, contextWith());
  assert.match(warnings[0] ?? '', /Slide 1 \("One"\): .*expired.*placeholder/);
});

test('overload is no missing picture: the call is refused, to be tried again', async () => {
  await assert.rejects(
    withPictures(readOutline(outline).deck, servicesThatFail(toolBusy), contextWith()),
    (error) => error instanceof Problem && error.type === toolBusy,
  );
});
