// The HTML page that lists the tools.
import { createBufferedResponse, type Html, html, trustHtml } from '../http/index.ts';
import type { ListedTool } from './listed-tool.ts';

const headers = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy':
    "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'referrer-policy': 'no-referrer',
  vary: 'accept',
};
const style =
  'body{font:1rem/1.6 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem;color-scheme:light dark}' +
  'pre{overflow:auto;padding:.8rem 1rem;border:1px solid;border-radius:.4rem}h2{margin-top:2.5rem}.off{border-left:.3rem solid;padding-left:.8rem}dt{font-weight:600}';

export function listPage(tools: readonly ListedTool[], baseUrl: string): Response {
  const page = html`<!doctype html>
    <html lang="en">
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <title>Tools · Moorage</title>
      <style>
        ${trustHtml(style)}
      </style>
      <h1>Tools</h1>
      <p>
        Call these tools from any HTTP client, without an account or a key: GET with query parameters, or POST with
        JSON. Every response reports what the call cost. MCP clients find the same tools at <code>${baseUrl}/mcp</code>.
      </p>
      <ul>
        ${tools.map((tool) => html`<li><a href="#${tool.name}">${tool.name}</a>: ${tool.title}${tool.on ? '' : ' (not available here)'}</li>`)}
      </ul>
      ${tools.map(section)}
    </html> `;
  return createBufferedResponse(page.toString(), { headers });
}

function section(tool: ListedTool): Html {
  const { properties = {}, required = [] } = tool.input_schema as {
    properties?: Record<string, { description?: string }>;
    required?: string[];
  };
  return html`<section id="${tool.name}">
    <h2>
      ${tool.title} <small><code>${tool.name}</code></small>
    </h2>
    <p>${tool.description}</p>
    ${tool.off_because === undefined ? '' : html`<p class="off">Not available here. ${tool.off_because}</p>`}
    <pre>curl '${tool.example}'</pre>
    <dl>
      ${Object.entries(properties).map(
        ([name, { description = '' }]) =>
          html`<dt><code>${name}</code>${required.includes(name) ? ' (required)' : ''}</dt>
            <dd>${description}</dd>`,
      )}
    </dl>
    <p>
      Price:
      ${tool.price_usd === 0 ? 'free' : `${String(tool.price_usd)} USD per call`}${tool.asks_models ? ', plus the billed cost of its model calls' : ''}.
      ${tool.artifacts.length === 0 ? '' : html`Creates a file (${tool.artifacts.join(', ')}). Add <code>raw=1</code> to get its bytes.`}
      ${tool.long ? 'Runs as a job: the response is a handle to poll. Add wait=60 to wait up to 60 seconds for the result.' : ''}
    </p>
  </section>`;
}
