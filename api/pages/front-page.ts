// Answers / for a person.
import type { Offer } from '../apps/index.ts';
import type { FrontPage } from '../protocols/index.ts';
import { exampleUrl } from '../tools/index.ts';
import type { CatalogData } from './catalog-data.ts';
import type { ProjectQuery } from './data.ts';
import { pageResponse } from './page.ts';
import { categories, frontPage, pageSize } from './views/front.ts';
import { field, type PageSite, visitOf } from './visit.ts';

const longestSearch = 100;

/** A tool that needs nothing and whose example is short enough to be read. */
const exampleTool = 'render_diagram';

export function frontPageOf(
  site: PageSite,
  { projects }: Pick<CatalogData, 'projects'>,
  { tools, off, baseUrl }: Pick<Offer, 'tools' | 'off' | 'baseUrl'>,
): FrontPage {
  const example = tools.find(({ name }) => name === exampleTool);
  return async (query, context, headers) => {
    const visit = visitOf(site, { path: '/', query, headers: context.headers });
    const wanted = wantedOf((name) => field(query, name));
    const found = await projects?.(wanted, context);
    const content = {
      apps: found === undefined ? undefined : { wanted, found },
      tools: tools.map((tool) => ({ name: tool.name, title: tool.title, isOff: off(tool) !== undefined })),
      example: example === undefined ? undefined : exampleUrl(example, baseUrl),
    };
    return pageResponse(frontPage(content, visit), visit, context.headers, headers);
  };
}

/** A category that is none is as if it were not there. */
function wantedOf(read: (name: string) => string | undefined): ProjectQuery {
  return {
    search: (read('q') ?? '').trim().slice(0, longestSearch),
    category: categories.find((one) => one === read('category')) ?? '',
    cursor: read('cursor') ?? '',
    size: pageSize,
  };
}
