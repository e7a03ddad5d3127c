// Answers with a page where a browser is refused one; programs and everything under a path of theirs get the problem.
import Negotiator from 'negotiator';
import { type Problem, problemMediaType } from '../../lib/problem.ts';
import type { RefusedRequest } from '../http/index.ts';
import { htmlType, pageResponse } from './page.ts';
import { problemOnPage } from './views/problem.ts';
import { type PageSite, visitOf } from './visit.ts';

const ofPrograms = /^\/(?:api|t|v1|mcp|a2a|problems|assets|\.well-known)(?:\/|$)|\.(?:json|txt)$/;

export function problemPageOf(site: PageSite): (problem: Problem, request: RefusedRequest) => Response | undefined {
  return (problem, request) => {
    const accept = request.headers.get('accept') ?? '*/*';
    const [preferred] = new Negotiator({ headers: { accept } }).mediaTypes([
      problemMediaType,
      'application/json',
      htmlType,
    ]);
    if (preferred !== htmlType || ofPrograms.test(request.path)) return undefined;
    const visit = visitOf(site, request);
    return pageResponse(problemOnPage(problem, request.id, visit), visit, request.headers, problem.headers);
  };
}
