// Makes a missing licence one click to fix: links to the page of the author's git server that adds a LICENSE file, and a text
// for servers that offer none.
import { z } from 'zod';
import { type App, readRepository } from './hosted-apps.ts';

export const licenseOffer = z.object({
  links: z
    .array(z.object({ title: z.string(), url: z.string() }))
    .describe('Pages of the git server that add a LICENSE file. One of them is enough.'),
  text: z
    .string()
    .optional()
    .describe(
      'Text of the MIT licence for that file, if the git server offers no text. Any open-source licence will do.',
    ),
});
export type LicenseOffer = z.output<typeof licenseOffer>;

/** Findings of a repository in which no licence was found, whatever the installation makes of it. */
const missingRule = 'license/missing';
const missingMessage = /^No licence was found\b/;

/**
 * Offers licences for a repository that was rejected for having none; undefined for any other rejection.
 * @param year in the copyright line of the text
 */
export function offerLicense(
  app: App,
  rejection: { readonly rule: string; readonly message: string } | undefined,
  year = new Date().getUTCFullYear(),
): LicenseOffer | undefined {
  if (rejection === undefined) return undefined;
  if (rejection.rule !== missingRule && !missingMessage.test(rejection.message)) return undefined;
  const { url, host, owner } = readRepository(app);
  const forge = identifyForge(host);
  const links = forge === undefined ? [] : forges[forge](url, readBranch(app));
  return { links, ...(forge === undefined || forge === 'gitea' ? { text: formatMit(year, owner) } : {}) };
}

/** The branch that is built. Undefined for a tag or a commit, to which no file can be added. */
function readBranch({ status }: App): string | undefined {
  return /^refs\/heads\/(.+)$/.exec(status?.source?.reference ?? '')?.[1];
}

type Forge = 'github' | 'gitlab' | 'gitea';

/** Identifies the software of a git server by its name. Undefined: nothing is known of its pages. */
function identifyForge(host: string): Forge | undefined {
  if (/^github\./.test(host)) return 'github';
  if (/^gitlab\./.test(host)) return 'gitlab';
  return /^(?:gitea|forgejo)\.|^codeberg\.org$/.test(host) ? 'gitea' : undefined;
}

/** Licences by the names that GitHub has for its templates. */
const templates = [
  ['MIT', 'mit'],
  ['Apache-2.0', 'apache-2.0'],
  ['GPL-3.0', 'gpl-3.0'],
] as const;

type Link = LicenseOffer['links'][number];

/** The pages that add a file. Those of GitHub and GitLab offer the text of licences; Gitea and Forgejo only name the file. */
const forges: Readonly<Record<Forge, (repo: string, branch: string | undefined) => Link[]>> = {
  github: (repo, branch) =>
    templates.map(([title, template]) => ({
      title,
      url: `${repo}/community/license/new?${new URLSearchParams({ ...(branch === undefined ? {} : { branch }), template }).toString()}`,
    })),
  gitlab: (repo, branch) =>
    branch === undefined
      ? []
      : [
          {
            title: 'LICENSE',
            url: `${repo}/-/new/${encodeBranch(branch)}?file_name=LICENSE&commit_message=Add+LICENSE`,
          },
        ],
  gitea: (repo, branch) =>
    branch === undefined ? [] : [{ title: 'LICENSE', url: `${repo}/_new/${encodeBranch(branch)}?filename=LICENSE` }],
};

/** The slashes of a branch stay in the path. */
function encodeBranch(branch: string): string {
  return branch.split('/').map(encodeURIComponent).join('/');
}

/** The MIT licence. Source: https://spdx.org/licenses/MIT.html */
function formatMit(year: number, holder: string): string {
  return `MIT License

Copyright (c) ${year} ${holder}

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the "Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`;
}
