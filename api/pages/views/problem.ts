// The page of a problem: what it is, in the words of the API, and a way on.
import type { Problem } from '../../../lib/problem.ts';
import { html } from '../../http/index.ts';
import type { Page } from '../page.ts';
import { english, facts } from '../parts.ts';
import type { Visit } from '../visit.ts';

export function problemOnPage(problem: Problem, requestId: string, visit: Visit): Page {
  const { text } = visit;
  const { status, slug } = problem.type;
  const title = headline(status, visit);
  return {
    title,
    status,
    main: html`<p class="meta"><span>${text.problem.title(String(status))}</span></p>
      <h1>${title}</h1>
      <p class="lead">${english(problem.message, visit)}</p>
      ${problem.errors.map(({ fix }) => html`<p>${english(fix, visit)}</p>`)}
      <p class="actions"><a class="button" href="${visit.link('/')}">${text.problem.home}</a></p>
      ${facts([
        [text.status.rule, html`<a href="/problems/${slug}"><code>${slug}</code></a>`],
        [text.problem.id, html`<code>${requestId}</code>`],
      ])}`,
  };
}

function headline(status: number, { text }: Visit): string {
  if (status === 404) return text.problem.notFound;
  if (status === 429 || status === 503) return text.problem.busy;
  return status >= 500 ? text.problem.ours : text.problem.wrong;
}
