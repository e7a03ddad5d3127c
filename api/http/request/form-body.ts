// Reads the body of a form that a page of this site sent, and refuses one that another site made the browser send.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Problem } from '../../../lib/problem.ts';
import { foreignForm, unsupportedMediaType } from '../problems/problems.ts';
import { type RequestFields, groupFields } from './given-fields.ts';
import { assertUncompressed, readBytes } from './request-body.ts';

const mediaType = 'application/x-www-form-urlencoded';

/** @throws Problem (foreign-form, body-too-large, unsupported-media-type, malformed-request) */
export async function readFormBody(request: IncomingMessage, limit: number): Promise<RequestFields> {
  rejectCrossSite(request.headers);
  assertUncompressed(request.headers['content-encoding']);
  const [given] = (request.headers['content-type'] ?? '').toLowerCase().split(';', 1);
  if (given?.trim() !== mediaType)
    throw new Problem(
      unsupportedMediaType,
      `This is the address of a form. Send its fields as ${mediaType}, or use the API.`,
      { headers: { accept: mediaType } },
    );
  return groupFields(new URLSearchParams((await readBytes(request, limit)).toString('utf8')));
}

/** Whether a browser sent this because a page of another site, or an app on a subdomain of this one, had it do so. */
export function isCrossSite({
  origin,
  host,
  site,
}: Readonly<Record<'origin' | 'host' | 'site', string | undefined>>): boolean {
  if (site !== undefined) return site !== 'same-origin' && site !== 'none';
  return origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === host);
}

/**
 * A browser sends a form without asking wherever a page names it, and what a form does here spends the visitor's quota.
 * Hosted apps answer on subdomains of this site, so the same site is not enough. A client that says nothing about where
 * the form comes from is no browser.
 */
function rejectCrossSite(headers: IncomingHttpHeaders): void {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (isCrossSite({ origin, host, site: [site].flat()[0] }))
    throw new Problem(foreignForm, 'This form was sent from another site. Open the page here and send it again.');
}
